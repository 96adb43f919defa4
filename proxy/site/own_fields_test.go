package site

import (
	"context"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// noting is an engine that remembers the request.
type noting struct {
	*still
	sent []string
}

func (n *noting) Open(context.Context, *balance.Peer, bool) forward.Backend {
	n.body.done = false
	return n
}

func (n *noting) Send(r *forward.Request) error {
	n.sent = fieldLines(r.Fields)
	return nil
}

type notingWorld struct {
	*quiet
	engine *noting
}

func (n *notingWorld) Opener(*Wire) forward.Opener { return n.engine }

// TestOwnFieldsOfAnAnswer: Server and Date are ours, but for those of a backend that a proxy_pass_header lets through, and
// stand first.
func TestOwnFieldsOfAnAnswer(t *testing.T) {
	answer := []string{"A: 1", "Server: theirs", "B: 2", "Date: then", "C: 3"}
	for pass, want := range map[string]string{
		"":                          "Server: upstrand, Date: Mon, 30 Nov 2026 10:00:00 GMT, A: 1, B: 2, C: 3, Connection: keep-alive",
		"proxy_pass_header Server;": "Date: Mon, 30 Nov 2026 10:00:00 GMT, A: 1, Server: theirs, B: 2, C: 3, Connection: keep-alive",
		"proxy_pass_header Date;":   "Server: upstrand, A: 1, B: 2, Date: then, C: 3, Connection: keep-alive",
		"proxy_pass_header Date; proxy_pass_header Server;": "A: 1, Server: theirs, B: 2, Date: then, C: 3, Connection: keep-alive",
	} {
		q := newQuiet(t, `server { listen 127.0.0.1:8080; location / { `+pass+` proxy_pass http://u; } }`)
		for range 2 { // memory of another request has fields already
			q.engine.fields = requestOf("GET /", answer...).Fields
			c := &collector{}
			q.site.Handle(t.Context(), q, requestOf("GET /"), c)
			if got := strings.Join(fieldLines(c.fields), ", "); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", pass, got, want)
			}
		}
	}
}

// TestFieldsThatGoOn: the same go on whether they are a piece of the client's list or one of their own, and the client's list
// stays as it is.
func TestFieldsThatGoOn(t *testing.T) {
	for _, tc := range []struct{ conf, ask, in, want string }{
		{"", "GET /", "Host: h|A: 1|B: 2", "A: 1|B: 2"},
		{"", "GET /", "A: 1|B: 2|Host: h", "A: 1|B: 2"},
		{"", "GET /", "A: 1|Host: h|B: 2|C: 3", "A: 1|B: 2|C: 3"},
		{"", "GET /", "A: 1|Connection: close, b|B: 2", "A: 1"},
		{"", "GET /", "Host: h", ""},
		{"", "GET /", "", ""},
		{"", "POST /", "Host: h|A: 1|Content-Length: 0", "A: 1|Content-Length: 0"},
		{`proxy_set_header X "";`, "GET /", "Host: h|X: x|A: 1", "A: 1"},
		{`proxy_set_header X x;`, "GET /", "Host: h|A: 1", "X: x|A: 1"},
		{`proxy_set_header X $arg_x;`, "GET /", "Host: h|X: x|A: 1", "A: 1"},
		{`proxy_set_header X $arg_x;`, "GET /?x=y", "Host: h|X: x|A: 1", "X: y|A: 1"},
		{"proxy_pass_request_headers off;", "GET /", "Host: h|A: 1", ""},
	} {
		q := newQuiet(t, `server { listen 127.0.0.1:8080; location / { `+tc.conf+` proxy_pass http://u; } }`)
		n := &notingWorld{q, &noting{still: q.engine}}
		for _, before := range []string{"", "Z: 1|Host: z|Z: 2|Z: 3|Z: 4"} { // what the memory had before
			if before != "" {
				n.site.Handle(t.Context(), n, requestOf("GET /", strings.Split(before, "|")...), deaf{})
			}
			var fields []string
			if tc.in != "" {
				fields = strings.Split(tc.in, "|")
			}
			r := requestOf(tc.ask, fields...)
			if r.Length == 0 {
				r.Body = nil
			}
			n.site.Handle(t.Context(), n, r, deaf{})
			if got := strings.Join(n.engine.sent, "|"); got != tc.want {
				t.Errorf("%s %s %s: %s, want %s", tc.conf, tc.ask, tc.in, got, tc.want)
			}
			if got := strings.Join(fieldLines(r.Fields), "|"); got != tc.in {
				t.Errorf("the client's list is %s, was %s", got, tc.in)
			}
		}
	}
}

// changing is a span that says in each attempt's request who asks.
type changing struct{ heard int }

func (c *changing) Attempt(r *forward.Request, _ *forward.Try) {
	c.heard++
	forward.SetField(r, []byte("traceparent"), []byte{'0' + byte(c.heard)})
	forward.SetField(r, []byte("tracestate"), nil)
}
func (*changing) Attempted(*forward.Try, error) {}
func (*changing) IDs() (trace, span string)     { return "", "" }
func (*changing) End(forward.SpanEnd)           {}

// TestSpansLeaveTheClientsFields: what a span changes for a backend is not what the client has sent: a round that follows, and
// the log, see the client's own.
func TestSpansLeaveTheClientsFields(t *testing.T) {
	for _, list := range []string{"A: 1|traceparent: theirs|B: 2", "Host: h|tracestate: theirs|A: 1|B: 2", "A: 1"} {
		q := newQuiet(t, `server { listen 127.0.0.1:8080; location / { proxy_pass http://u; } location /again { proxy_pass http://u; } }`)
		n := &notingWorld{q, &noting{still: q.engine}}
		span := &changing{}
		in := requestOf("GET /", strings.Split(list, "|")...)
		q.engine.fields = append(q.engine.fields, forward.Field{Name: []byte("X-Accel-Redirect"), Value: []byte("/again")})
		n.site.Continue(t.Context(), n, in, deaf{}, &Served{Span: span})
		if got := strings.Join(fieldLines(in.Fields), "|"); got != list {
			t.Errorf("the client's list is %s, was %s", got, list)
		}
		sent := strings.Join(n.engine.sent, "|")
		if span.heard == 0 || !strings.Contains(sent, "traceparent: "+string(rune('0'+span.heard))) || strings.Contains(sent, "theirs") || !strings.Contains(sent, "A: 1") {
			t.Errorf("%d attempts, the last one has %s", span.heard, sent)
		}
	}
}
