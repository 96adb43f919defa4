package front

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// FuzzHead: a head is read the same however it arrives, and what is taken for one here means the same to net/http.
func FuzzHead(f *testing.F) {
	for _, s := range []string{
		browser, get, "\r\n\r\n" + get, "POST http://h:1/x?y HTTP/1.0\r\nContent-Length: 5\r\nConnection: keep-alive, x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nExpect: 100-continue\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nA: \tb\t\r\nB:\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "GET /\x00 HTTP/1.1\r\n\r\n", "GET https://a?b HTTP/1.1\r\nHost: a%41\r\n\r\n",
	} {
		f.Add([]byte(s), byte(3))
	}
	s := Settings{ClientMax: 4096}.withDefaults()
	f.Fuzz(func(t *testing.T, data []byte, step byte) {
		var whole, pieces head
		whole.reset(&s)
		whole.feed(data)
		pieces.reset(&s)
		for at := 0; at < len(data) && !pieces.done; {
			at = min(at+int(step)+1, len(data))
			pieces.feed(data[:at])
		}
		if a, b := show(&whole), show(&pieces); a != b {
			t.Fatalf("at once %s\nin pieces %s", a, b)
		}
		if whole.done && whole.fault == nil && string(whole.req.Method) != "CONNECT" {
			compare(t, &whole, data)
		}
	})
}

func show(h *head) string {
	return fmt.Sprintf("%v %v %q %q %q %d %q %d %v %v %v %v %v", h.done, h.fault, h.req.Method, h.req.Target, h.req.Authority, h.minor, h.fields, h.length, h.chunked, h.close, h.keepAlive, h.upgrade, h.expect)
}

// compare reads the same with net/http, which may refuse what is right.
func compare(t *testing.T, h *head, data []byte) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data[h.start:])))
	if err != nil {
		return
	}
	target := r.RequestURI
	if h.absolute {
		if _, target, _ = strings.Cut(target, "://"); strings.ContainsAny(target, "/?") {
			target = target[strings.IndexAny(target, "/?"):]
		} else {
			target = ""
		}
		if !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
	}
	length := h.length
	switch {
	case h.chunked:
		length = -1
	case length < 0:
		length = 0
	}
	if r.Method != string(h.req.Method) || target != string(h.req.Target) || r.Host != string(h.req.Authority) || r.ContentLength != length {
		t.Fatalf("%s\nnet/http: %s %s %q %d", show(h), r.Method, target, r.Host, r.ContentLength)
	}
	for _, f := range h.fields {
		found := false
		for _, v := range r.Header.Values(string(f.Name)) {
			found = found || v == string(f.Value)
		}
		if name := http.CanonicalHeaderKey(string(f.Name)); !found && name != "Trailer" && name != "Pragma" {
			t.Fatalf("%q is not in %v", f.Name, r.Header)
		}
	}
}
