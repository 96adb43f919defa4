package balance_test

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// journey is one request; it is the exchange's opener, client and hooks at once.
type journey struct {
	r        *replay
	ask      ask
	hold     bool
	peers    []string
	last     *balance.Peer
	statuses []int
	cookies  []string // that the last answer set
	status   int
	held     chan struct{}
	release  chan struct{}
	done     chan struct{}
}

func (j *journey) Open(_ context.Context, p *balance.Peer, _ bool) forward.Backend {
	j.peers = append(j.peers, p.ID())
	j.last = p
	return &behaviour{j: j, mode: j.r.mode[p.ID()]}
}

func (j *journey) Inform(int, []forward.Field) error { return nil }

func (j *journey) Head(status int, _ []forward.Field, _ int64) error {
	j.status = status
	return nil
}
func (j *journey) Write([]byte) error                  { return nil }
func (j *journey) End([]forward.Field) error           { return nil }
func (j *journey) Abort()                              {}
func (j *journey) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel here") }

// hooks are what a site would say of the request.
type hooks struct{ j *journey }

func (h hooks) Ask(g *balance.Group) *balance.Ask {
	u, q := h.j.r.upstreams[g.Name()], h.j.ask
	out := &balance.Ask{Client: netip.MustParseAddr(q.client)}
	if u.Method == "hash" {
		out.Key = []byte(q.expand(u.MethodArgs[0], nil))
	}
	words := u.sticky()
	switch {
	case words == nil:
	case words[0] == "cookie":
		out.Session = []byte(q.expand("$cookie_"+words[1], nil))
	case words[0] == "route":
		out.Session = []byte(q.first(words[1:], "", nil))
	case words[0] == "learn":
		out.Session = []byte(q.first(words[1:], "lookup=", nil))
	}
	return out
}

// first is the first of the words with the prefix that is not empty once its variables are filled in.
func (a ask) first(words []string, prefix string, answered []string) string {
	for _, w := range words {
		if text, ok := strings.CutPrefix(w, prefix); ok {
			if value := a.expand(text, answered); value != "" {
				return value
			}
		}
	}
	return ""
}

func (h hooks) Head(_ *balance.Group, _ int, fields []forward.Field) ([]forward.Field, bool) {
	return fields, true
}

func (h hooks) Session(g *balance.Group) []byte {
	if words := h.j.r.upstreams[g.Name()].sticky(); words != nil && words[0] == "learn" {
		return []byte(h.j.ask.first(words[1:], "create=", h.j.cookies))
	}
	return nil
}

func (h hooks) Trailer(fields []forward.Field) []forward.Field { return fields }

// behaviour is an attempt at a backend that behaves in one of the vectors' ways.
type behaviour struct {
	j    *journey
	mode string
	body time.Duration // from the head of the answer to its end
}

func (b *behaviour) fail(c forward.Class, status int) error {
	b.j.statuses = append(b.j.statuses, status)
	return &forward.Error{Class: c, Err: errors.New(b.mode)}
}

func (b *behaviour) pass(d time.Duration) { b.j.r.now.Add(int64(d)) }

func (b *behaviour) Send(*forward.Request) error {
	if b.mode == "refuse" {
		return b.fail(forward.OnError, 502)
	}
	return nil
}

func (b *behaviour) Head() (int, []forward.Field, error) {
	kind, arg, _ := strings.Cut(b.mode, ":")
	switch kind {
	case "close":
		return 0, nil, b.fail(forward.OnError, 502)
	case "badheader":
		return 0, nil, b.fail(forward.OnInvalidHeader, 502)
	case "hang":
		b.pass(b.j.r.readTimeout)
		return 0, nil, b.fail(forward.OnTimeout, 504)
	}
	status := 200
	switch {
	case kind == "status":
		status, _ = strconv.Atoi(arg)
	case kind == "garbage":
		b.j.statuses = append(b.j.statuses, 200) // as nginx logs it
		return forward.Headless, nil, nil
	case b.j.hold:
		close(b.j.held)
		<-b.j.release
	case kind == "delay":
		b.pass(milliseconds(arg))
	case kind == "slow":
		head, body, _ := strings.Cut(arg, ":")
		b.pass(milliseconds(head))
		b.body = milliseconds(body)
	case kind == "cookie":
		b.j.cookies = []string{arg}
	case kind != "" && kind != "ok" && kind != "partial":
		panic("behaviour " + b.mode)
	}
	b.j.statuses = append(b.j.statuses, status)
	return status, nil, nil
}

func milliseconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(n) * time.Millisecond
}

func (b *behaviour) Body() forward.Source { return b }

func (b *behaviour) Read([]byte) (int, error) {
	if b.mode == "partial" {
		return 0, io.ErrUnexpectedEOF
	}
	b.pass(b.body)
	b.body = 0
	return 0, io.EOF
}
func (b *behaviour) Trailer() []forward.Field            { return nil }
func (b *behaviour) Rewind() error                       { return errors.New("an answer") }
func (b *behaviour) Rewindable() bool                    { return false }
func (b *behaviour) Sent() forward.Progress              { return forward.Progress{Sent: b.mode != "refuse"} }
func (b *behaviour) Tunnel() (io.ReadWriteCloser, error) { return nil, errors.New("no tunnel here") }
func (b *behaviour) Close()                              {}
