package site

import (
	"context"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// forgetting is a troupe whose engine uses the memory of answers again at once.
type forgetting struct {
	*troupe
	opened   int
	released int
	sent     []string // the fields of each attempt's request
}

func (f *forgetting) Opener(*Wire) forward.Opener { return f }
func (f *forgetting) Open(ctx context.Context, p *balance.Peer, fresh bool) forward.Backend {
	f.opened++
	return &mortal{actor: f.troupe.Open(ctx, p, fresh).(*actor), of: f}
}

type mortal struct {
	*actor
	of *forgetting
}

func (m *mortal) Send(r *forward.Request) error {
	m.of.sent = append(m.of.sent, strings.Join(fieldLines(r.Fields), "|"))
	return m.actor.Send(r)
}

// Release does what the next user of the memory would.
func (m *mortal) Release() {
	m.of.released++
	for _, f := range m.fields {
		for i := range f.Value {
			f.Value[i] = '!'
		}
	}
}

// TestFieldsOfFormerRounds: what one backend said can be told to the next, and to the log.
func TestFieldsOfFormerRounds(t *testing.T) {
	w := newTroupe(t, threePeers+rounds)
	f := &forgetting{troupe: w}
	w.plays["1"], w.plays["5"] = "fields:X-Accel-Redirect=@next|X-A=first", "fields:X-A=second"
	c := &collector{}
	w.site.Handle(context.Background(), f, requestOf("GET /"), c)
	if got := w.logged(); got != "second first second" {
		t.Errorf("%s", got)
	}
	if got := string(fieldList(c.fields).get("X-B")); got != "second" {
		t.Errorf("X-B %s", got)
	}
	if len(w.tries) != 2 || !strings.HasPrefix(w.tries[1], "5 GET /first") {
		t.Errorf("%v", w.tries)
	}
	if f.released != 2 {
		t.Errorf("%d released, want both", f.released)
	}
}

const rounds = `log_format l '$upstream_http_x_a $saved $sent_http_x_b'; access_log /l l;
	server { listen 127.0.0.1:8080;
		location / { proxy_pass http://u; }
		location @next { set $saved $upstream_http_x_a; add_header X-B $upstream_http_x_a; proxy_pass http://v/$upstream_http_x_a; }
	}`

// TestMethodsOfTheWay: proxy_method changes what the backend is asked, not what the client gets.
func TestMethodsOfTheWay(t *testing.T) {
	w := newTroupe(t, threePeers+`server { listen 127.0.0.1:8080;
		location /get { proxy_method GET; proxy_pass http://u; }
		location /head { proxy_method HEAD; proxy_pass http://u; }
	}`)
	if c := w.ask("HEAD /get"); c.body.Len() != 0 || string(fieldList(c.fields).get("Content-Length")) != "18" || !c.ended {
		t.Errorf("%q %v", c.body.String(), fieldLines(c.fields))
	}
	if c := w.ask("GET /head"); c.body.Len() != 0 || fieldList(c.fields).get("Content-Length") != nil || !c.ended {
		t.Errorf("%q %v", c.body.String(), fieldLines(c.fields))
	}
	if got := strings.Join(w.tries, ", "); got != "1 GET /get, 2 HEAD /head" {
		t.Errorf("%s", got)
	}
}

// TestClientGone: nobody's fault, and 499 in the log.
func TestClientGone(t *testing.T) {
	conf := threePeers + `log_format l '$status $upstream_status'; access_log /l l;
	server { listen 127.0.0.1:8080; location / { proxy_pass http://u; } location /on { proxy_ignore_client_abort on; proxy_pass http://u; } }`
	for _, tc := range []struct{ ask, log string }{{"GET /", "499 200"}, {"GET /on", "200 200"}} {
		w := newTroupe(t, conf)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.site.Handle(ctx, w, requestOf(tc.ask), &collector{})
		if got := w.logged(); got != tc.log {
			t.Errorf("%s: %s, want %s", tc.ask, got, tc.log)
		}
		for _, p := range w.groups["u"].Group.Snapshot() {
			if p.Fails+p.Conns != 0 {
				t.Errorf("%s: %+v", tc.ask, p)
			}
		}
	}
}
