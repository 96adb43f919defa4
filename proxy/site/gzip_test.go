package site

import "testing"

// TestCutWhileCompressing: an answer that ends before its end leaves the compressor unended, and the request's memory is
// still given back.
func TestCutWhileCompressing(t *testing.T) {
	w := newTroupe(t, threePeers+`
	log_format l '$status $sent_http_content_encoding';
	access_log /l l;
	server { listen 127.0.0.1:8080; gzip on; gzip_types *; gzip_min_length 1; location / { proxy_pass http://u; } }`)
	w.plays["1"] = "cut"
	for range 2 {
		c := w.ask("GET /", "Accept-Encoding: gzip")
		if w.plays["1"] = ""; c.status != 200 {
			t.Errorf("status %d", c.status)
		}
		if got := w.logged(); got != "200 gzip" {
			t.Error(got)
		}
	}
}
