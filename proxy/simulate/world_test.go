package simulate

import (
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
)

func TestBehaviours(t *testing.T) {
	for text, want := range map[string]behaviour{
		"ok":               {kind: answers, status: 200},
		"status:503":       {kind: answers, status: 503},
		"refuse":           {kind: refuses, status: 200},
		"delay:30":         {kind: answers, status: 200, header: 30 * time.Millisecond},
		"slow:10:20":       {kind: answers, status: 200, header: 10 * time.Millisecond, body: 20 * time.Millisecond},
		"cookie:a=b":       {kind: answers, status: 200, field: "Set-Cookie", value: "a=b"},
		"xaccel:/x:y":      {kind: answers, status: 200, field: "X-Accel-Redirect", value: "/x:y"},
		"stale":            {kind: stales, status: 200},
		"badheader":        {kind: badHeader, status: 200},
		"status:199":       {},
		"status:600":       {},
		"status:":          {},
		"status":           {},
		"ok:1":             {},
		"slow:1":           {},
		"slow:a:1":         {},
		"delay:1h":         {},
		"delay:9999999999": {},
		"cookie:":          {},
		"":                 {},
	} {
		got, err := parseBehaviour(text)
		if bad := want == (behaviour{}); bad != (err != nil) || !bad && got != want {
			t.Errorf("parseBehaviour(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestAlign(t *testing.T) {
	second := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct{ at, want time.Duration }{
		"before the mark":   {20 * time.Millisecond, 1060 * time.Millisecond},
		"at the mark":       {60 * time.Millisecond, 1060 * time.Millisecond},
		"after the mark":    {61 * time.Millisecond, 1060 * time.Millisecond},
		"late in a second":  {999 * time.Millisecond, 1060 * time.Millisecond},
		"start of a second": {0, 1060 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var now clock
			now.ns.Store(second.Add(c.at).UnixNano())
			if got := time.Duration(now.aligned() - second.UnixNano()); got != c.want {
				t.Errorf("aligned to %v, want %v", got, c.want)
			}
		})
	}
}

func TestNamesKeepTheirAddress(t *testing.T) {
	w := newWorld(1)
	for _, c := range []struct{ text, want string }{
		{"a", "240.0.0.1:80"}, {"b:81", "240.0.0.2:81"}, {"a:82", "240.0.0.1:82"}, {"10.0.0.1", "10.0.0.1:80"}, {"localhost:9", "127.0.0.1:9"},
		{"[::1]:7", "[::1]:7"},
	} {
		if got, err := w.address(c.text); err != nil || got != c.want {
			t.Errorf("address(%q) = %q, %v; want %q", c.text, got, err, c.want)
		}
	}
	if _, err := w.address("a:99999"); err == nil {
		t.Error("a port of 99999 was taken")
	}
}

func TestKeptConnections(t *testing.T) {
	w := newWorld(1)
	a, b := new(balance.Peer), new(balance.Peer)
	w.keepalive([]*balance.Peer{a, b}, topology.Keepalive{Idle: 2, Timeout: time.Minute})
	if w.takeIdle(a) {
		t.Error("a connection was there before one was kept")
	}
	w.putIdle(a)
	w.pass(59 * time.Second)
	w.putIdle(b)
	if !w.takeIdle(a) || w.takeIdle(a) {
		t.Error("a kept connection serves once, for a minute")
	}
	w.pass(time.Minute)
	if w.takeIdle(b) {
		t.Error("a connection was kept for longer than the timeout")
	}
	for _, p := range []*balance.Peer{a, b, b} {
		w.putIdle(p)
	}
	if w.takeIdle(a) {
		t.Error("the oldest of three stayed where two may")
	}
	w.keepalive([]*balance.Peer{a, b}, topology.Keepalive{Idle: 2})
	if !w.takeIdle(b) {
		t.Error("a reload dropped a kept connection")
	}
	w.keepalive([]*balance.Peer{a, b}, topology.Keepalive{})
	w.putIdle(a)
	if w.takeIdle(a) {
		t.Error("keepalive 0 kept one")
	}
}
