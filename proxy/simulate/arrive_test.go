package simulate

import (
	"bytes"
	"strings"
	"testing"
)

// TestExplainChoosesTheListen: by scheme and port; what is chosen is said where there are several.
func TestExplainChoosesTheListen(t *testing.T) {
	conf := `ssl_certificate /a.crt; ssl_certificate_key /a.key;
server { listen 8080; listen [::]:8080; return 201; }
server { listen 80; listen 10.0.0.1:80; return 202; }
server { listen 8443 ssl; return 203; }
server { listen 9443 ssl; return 204; }
server { listen 9443 ssl; server_name a.test; return 200 "$scheme $server_port"; }`
	for name, c := range map[string]struct {
		ask        Ask
		said, want string
	}{
		"nothing":         {Ask{}, "arrives at 0.0.0.0:80 (test.conf:3): the file has several listens, and neither scheme nor port says which; listens: 0.0.0.0:8080 (test.conf:2), [::]:8080", "answered 202 here"},
		"port":            {Ask{Port: 8080}, "arrives at 0.0.0.0:8080 (test.conf:2)\n", "answered 201 here"},
		"scheme":          {Ask{Scheme: "https"}, "arrives at 0.0.0.0:8443 ssl (test.conf:4): nothing that speaks https listens on port 443\n", "answered 203 here"},
		"scheme and port": {Ask{Scheme: "https", Port: 9443}, "arrives at 0.0.0.0:9443 ssl (test.conf:5)\n", "answered 204 here"},
		"port of TLS":     {Ask{Port: 9443, Host: "a.test"}, "arrives at 0.0.0.0:9443 ssl", "answered 200 here"},
		"an address":      {Ask{Port: 80, Host: "10.0.0.1"}, "arrives at 10.0.0.1:80 (test.conf:3)\n", "answered 202 here"},
	} {
		var out bytes.Buffer
		c.ask.Target = "/"
		if err := Explain(t.Context(), &out, file(t, conf), c.ask); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.HasPrefix(out.String(), c.said) || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: want %q first, and %q:\n%s", name, c.said, c.want, &out)
		}
	}
	for want, ask := range map[string]Ask{
		"nothing listens on port 81; listens: 0.0.0.0:8080 (test.conf:2), ": {Port: 81},
		"0.0.0.0:8080 (test.conf:2) speaks no TLS; listens: ":               {Port: 8080, Scheme: "https"},
		"0.0.0.0:8443 ssl (test.conf:4) speaks TLS: ":                       {Port: 8443, Scheme: "http"},
		`scheme "ftp": want http or https`:                                  {Scheme: "ftp"},
		"from 1 to 65535":                                                   {Port: 65536},
	} {
		ask.Target = "/"
		if err := Explain(t.Context(), &bytes.Buffer{}, file(t, conf), ask); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Explain(t.Context(), &bytes.Buffer{}, file(t, shop), Ask{Target: "/", Scheme: "https"}); err == nil || !strings.Contains(err.Error(), "no listen speaks https; listens: 0.0.0.0:80 (test.conf:5)") {
		t.Error(err)
	}
	var out bytes.Buffer
	both := "server { listen 80; listen [::]:80; return 204; }"
	if err := Explain(t.Context(), &out, file(t, both), Ask{Target: "/"}); err != nil || strings.Contains(out.String(), "arrives") {
		t.Errorf("%v, there is nothing to choose:\n%s", err, &out)
	}
}

// A scenario's https arrives at 443, and speaks TLS.
func TestAScenarioSpeaksTLS(t *testing.T) {
	conf := `server { listen 80; return 201; }
server { listen 443 ssl; ssl_certificate /a.crt; ssl_certificate_key /a.key; if ($ssl_protocol = TLSv1.3) { return 202; } }`
	s, err := ParseScenario("s", []byte("request GET / scheme=https\nexpect status 202\nrequest GET /\nexpect status 201\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), &bytes.Buffer{}, file(t, conf), s, Options{}); err != nil {
		t.Error(err)
	}
}

// What can't come is told with what can.
func TestExpectNamesTheServers(t *testing.T) {
	for line, want := range map[string]string{
		"expect x":          "request 1: expected x, got a; no server x in the configuration; servers: a, b, c, u1, u2, u3",
		"expect a,10.0.0.9": "request 1: expected a,10.0.0.9, got a; no server 10.0.0.9 in the configuration; servers: a, b, c, u1, u2, u3",
		"expect b":          "request 1: expected b, got a",
		"expect status 500": "request 1: expected 500, got 200",
	} {
		s, err := ParseScenario("s", []byte("request GET / host=shop.test\n"+line+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = Run(t.Context(), &bytes.Buffer{}, file(t, shop), s, Options{})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
