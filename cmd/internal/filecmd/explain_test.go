package filecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainTakesAURL(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "p.conf")
	text := "server { listen 80; server_name x; return 201; }\nserver { listen 8080; return 202; }\nserver { listen 8080; server_name api.example; return 203; }\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--request", "GET http://api.example:8080/a?b=c"}, []string{"arrives at 0.0.0.0:8080 (", "GET /a?b=c of host api.example:8080 ", "answered 203"}},
		{[]string{"--request", "http://api.example"}, []string{"arrives at 0.0.0.0:80 (", "GET / of host api.example ", "answered 201"}},
		{[]string{"--request", "GET HTTP://api.example?x"}, []string{"GET /?x of host api.example "}},
		{[]string{"--request", "GET /", "--header", "Host: api.example"}, []string{"p.conf:1): the file has several listens, and neither scheme nor port says which"}},
		{[]string{"--request", "GET /", "--header", "Host: api.example", "--port", "8080"}, []string{"arrives at 0.0.0.0:8080 (", "answered 203"}},
		{[]string{"--request", "GET http://x/", "--port", "8080"}, []string{"answered 202"}},
		{[]string{"--request", "GET https://x/"}, []string{"error: no listen speaks https; listens: 0.0.0.0:80 ("}},
		{[]string{"--request", "GET http://x:81/"}, []string{"error: nothing listens on port 81; listens: "}},
		{[]string{"--request", "GET http://x:80/", "--port", "8080"}, []string{"error: --port is 8080, and the URL of --request says 80"}},
		{[]string{"--request", "GET http://x/", "--scheme", "https"}, []string{`error: --scheme is "https", and the URL of --request says http`}},
		{[]string{"--scheme", "ftp"}, []string{`error: --scheme is "ftp": want http or https`}},
		{[]string{"--port", "0"}, []string{"error: --port is 0: want a number from 1 to 65535"}},
		{[]string{"--request", "GET ftp://x/"}, []string{"error: --request is ", "want 'METHOD /path' or 'METHOD http[s]://HOST[:PORT]/path'"}},
		{[]string{"--request", "GET http:///a"}, []string{"error: --request is "}},
		{[]string{"--request", "GET http://x:99999/a"}, []string{"error: --request is "}},
	} {
		out, err := run(t, Explain(), append([]string{"--conf", conf}, c.args...)...)
		if err != nil {
			out += "error: " + err.Error()
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q: %q is not said in:\n%s", c.args, want, out)
			}
		}
	}
}
