package http2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestExchange: what is sent reaches the peer as it was, and its answer comes back whole.
func TestExchange(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			var seen string
			peer := serve(t, secure, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				var names []string
				for name, v := range r.Header {
					names = append(names, fmt.Sprint(name, v))
				}
				sort.Strings(names)
				seen = fmt.Sprint(r.Proto, r.Method, r.Host, r.RequestURI, names, r.ContentLength, string(b), r.Trailer)
				seen = strings.NewReplacer("] 0", "]0", "] 3", "]3", "] -1", "]-1").Replace(seen)
				w.Header().Set("Link", "</a>")
				w.WriteHeader(103)
				w.Header().Del("Link")
				w.Header()["X-Two"] = []string{"1", "2"}
				w.Header().Set("Trailer", "X-End")
				_, _ = io.WriteString(w, "answer")
				w.Header().Set("X-End", "e")
			})
			scheme := map[bool]string{false: "http", true: "https"}[secure]
			ps := newPools(t, PeerSettings{})
			p, _ := peerAt(t, ps, scheme, peer.addr)
			o := ps.Opener(Wire{ServerName: "peer.example"})
			for name, tc := range map[string]struct {
				r    *forward.Request
				want string
			}{
				"no body":          {want("/a%2fb//c?d"), "HTTP/2.0GETa.example/a%2fb//c?d[]0map[]"},
				"two slashes":      {want("//x/y"), "HTTP/2.0GETa.example//x/y[]0map[]"},
				"bytes beyond":     {want("/\xe4\"<>?\xff"), "HTTP/2.0GETa.example/\xe4\"<>?\xff[]0map[]"},
				"fields":           {withFields(want("/"), "accept", "x", "Te", "gzip, trailers", "Connection", "close", "Upgrade", "y", "Host", "z", "Keep-Alive", "1", "User-Agent", "me"), "HTTP/2.0GETa.example/[Accept[x] Te[trailers] User-Agent[me]]0map[]"},
				"known length":     {withBody(want("/"), "abc", 3), "HTTP/2.0GETa.example/[Content-Length[3]]3abcmap[]"},
				"unknown length":   {withBody(want("/"), "abc", -1), "HTTP/2.0GETa.example/[]-1abcmap[]"},
				"trailer":          {withFields(withBody(want("/"), "abc", -1), "Trailer", "x-t, X-None"), "HTTP/2.0GETa.example/[]-1abcmap[X-None:[] X-T:[v]]"},
				"unasked trailer":  {withBody(want("/"), "abc", -1), "HTTP/2.0GETa.example/[]-1abcmap[]"},
				"OPTIONS *":        {&forward.Request{Method: []byte("OPTIONS"), Authority: []byte("a.example"), Target: []byte("*")}, "HTTP/2.0OPTIONSa.example*[]0map[]"},
				"no authority":     {&forward.Request{Method: []byte("GET"), Target: []byte("/")}, "HTTP/2.0GET" + peer.addr + "/[]0map[]"},
				"Expect: continue": {withFields(withBody(want("/"), "abc", 3), "Expect", "100-continue"), "HTTP/2.0GETa.example/[Content-Length[3]]3abcmap[]"},
			} {
				answer, err := one(t.Context(), o, p, tc.r)
				if err != nil || answer != "Early Hints [Link: </a>]OK [X-Two: 1] [X-Two: 2] [Trailer: X-End] answer [X-End: e]" {
					t.Errorf("%s: %q, %v", name, answer, err)
				}
				if seen != tc.want {
					t.Errorf("%s: %s\nwant %s", name, seen, tc.want)
				}
			}
			if n := peer.opened(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func withFields(r *forward.Request, fields ...string) *forward.Request {
	for i := 0; i < len(fields); i += 2 {
		r.Fields = append(r.Fields, field(fields[i], fields[i+1]))
	}
	return r
}

func withBody(r *forward.Request, body string, length int64) *forward.Request {
	r.Body, r.Length = newText(body, field("X-T", "v")), length
	return r
}

// TestBadRequests are not sent.
func TestBadRequests(t *testing.T) {
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", "127.0.0.1:1")
	for name, r := range map[string]*forward.Request{
		"method":  {Method: []byte("G T"), Target: []byte("/")},
		"CONNECT": {Method: []byte("CONNECT"), Target: []byte("a:1")},
		"target":  {Method: []byte("GET"), Target: []byte("/a b")},
		"no path": {Method: []byte("GET"), Target: []byte("http://a/")},
		"host":    {Method: []byte("GET"), Target: []byte("/"), Authority: []byte("a b")},
	} {
		if _, err := one(t.Context(), ps.Opener(Wire{}), p, r); classOf(t, err) != forward.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTrailersOnly: an answer that ends with its head says so.
func TestTrailersOnly(t *testing.T) {
	peer := serve(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Grpc-Status", "12")
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "x")
		}
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", peer.addr)
	for target, ends := range map[string]bool{"/": false, "/body": false} { // net/http says Content-Length: 0
		b := ps.Opener(Wire{}).Open(t.Context(), p, false)
		_ = b.Send(want(target))
		if _, _, err := b.Head(); err != nil {
			t.Fatal(err)
		}
		if got := b.(forward.Ready).Ready(); got != ends {
			t.Errorf("%s: %v", target, got)
		}
		b.Close()
	}
	raw := speak(t, func(r *raw) {
		for id := r.asked(); id != 0; id = r.asked() {
			_ = r.headers(id, true, ":status", "200", "grpc-status", "12")
		}
	})
	p, _ = peerAt(t, ps, "http", raw)
	b := ps.Opener(Wire{}).Open(t.Context(), p, false)
	defer b.Close()
	_ = b.Send(want("/"))
	if _, _, err := b.Head(); err != nil || !b.(forward.Ready).Ready() {
		t.Errorf("%v, or it did not end", err)
	}
}

// TestFailures holds what each way to fail is called, and what it proves.
func TestFailures(t *testing.T) {
	reset := func(code http2.ErrCode) func(*raw) {
		return func(r *raw) { _ = r.fr.WriteRSTStream(r.asked(), code); r.drain() }
	}
	for name, tc := range map[string]struct {
		play   func(*raw)
		class  forward.Class
		unread bool
		in     bool // something came
	}{
		"refused":          {reset(http2.ErrCodeRefusedStream), forward.OnError, true, false},
		"reset":            {reset(http2.ErrCodeInternal), forward.OnError, false, true},
		"cancelled":        {reset(http2.ErrCodeCancel), forward.OnError, false, true},
		"protocol error":   {reset(http2.ErrCodeProtocol), forward.OnError, false, true},
		"GOAWAY before it": {func(r *raw) { r.asked(); _ = r.fr.WriteGoAway(0, http2.ErrCodeNo, nil); r.drain() }, forward.OnError, true, false},
		"angry GOAWAY":     {func(r *raw) { r.asked(); _ = r.fr.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil); r.drain() }, forward.OnError, true, false},
		"GOAWAY with it":   {func(r *raw) { r.asked(); _ = r.fr.WriteGoAway(1, http2.ErrCodeNo, nil) }, forward.OnError, false, false},
		"closed":           {func(r *raw) { r.asked() }, forward.OnError, false, false},
		"no status":        {func(r *raw) { _ = r.headers(r.asked(), true, "x", "y"); r.drain() }, forward.OnInvalidHeader, false, true},
		"a strange status": {func(r *raw) { _ = r.headers(r.asked(), true, ":status", "xyz"); r.drain() }, forward.OnInvalidHeader, false, true},
		"status 101":       {func(r *raw) { _ = r.headers(r.asked(), true, ":status", "101"); r.drain() }, forward.OnInvalidHeader, false, true},
		"too large a head": {func(r *raw) {
			_ = r.headers(r.asked(), true, ":status", "200", "x", strings.Repeat("y", 5000))
			r.drain()
		}, forward.OnInvalidHeader, false, false},
		"endless 103": {func(r *raw) {
			id := r.asked()
			for range 100 {
				_ = r.headers(id, false, ":status", "103")
			}
			r.drain()
		}, forward.OnInvalidHeader, false, true},
		"no answer":         {(*raw).drain, forward.OnTimeout, false, false},
		"the head, no more": {func(r *raw) { _ = r.headers(r.asked(), false, ":status", "200"); r.drain() }, forward.OnTimeout, false, false},
		"a cut body": {func(r *raw) {
			id := r.asked()
			_ = r.headers(id, false, ":status", "200")
			_ = r.fr.WriteData(id, false, []byte("x"))
		}, forward.OnError, false, false},
		"a body that is cut": {func(r *raw) {
			id := r.asked()
			_ = r.headers(id, false, ":status", "200")
			_ = r.fr.WriteRSTStream(id, http2.ErrCodeInternal)
			r.drain()
		}, forward.OnError, false, true},
		"too short a body": {func(r *raw) {
			id := r.asked()
			_ = r.headers(id, false, ":status", "200", "content-length", "5")
			_ = r.fr.WriteData(id, true, []byte("x"))
			r.drain()
		}, forward.OnError, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ps := newPools(t, PeerSettings{})
			p, _ := peerAt(t, ps, "http", speak(t, tc.play))
			b := ps.Opener(Wire{Read: 400 * time.Millisecond, HeadMax: 4096}).Open(t.Context(), p, false)
			defer b.Close()
			text, err := got(b, want("/"))
			if err == nil {
				t.Fatalf("no error but %s", text)
			}
			if c, s := classOf(t, err), b.Sent(); c != tc.class || s.Unread != tc.unread || (s.In > 0) != tc.in || !s.Connected {
				t.Errorf("%v (%v), %+v", c, err, s)
			}
		})
	}
}

// TestNoConnection: refused, not HTTP/2, a name that does not fit, and a handshake that never ends.
func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // whoever connects waits
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	one1 := serve1(t)
	h2 := serve(t, true, func(http.ResponseWriter, *http.Request) {})
	for name, tc := range map[string]struct {
		scheme, addr, name string
		class              forward.Class
	}{
		"refused":          {"http", "127.0.0.1:1", "", forward.OnError},
		"HTTP/1.1 alone":   {"https", one1, "", forward.OnError},
		"another name":     {"https", h2.addr, "other.example", forward.OnError},
		"a silent peer":    {"https", l.Addr().String(), "", forward.OnTimeout},
		"an expected name": {"https", h2.addr, "peer.example", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ps := newPools(t, PeerSettings{})
			p, _ := peerAt(t, ps, tc.scheme, tc.addr)
			b := ps.Opener(Wire{Connect: 200 * time.Millisecond, ServerName: tc.name}).Open(t.Context(), p, false)
			defer b.Close()
			_, err := got(b, want("/"))
			if tc.class == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || classOf(t, err) != tc.class || b.Sent().Sent || b.Sent().Connected {
				t.Errorf("%v, %+v", err, b.Sent())
			}
		})
	}
}

// TestClientGoesWhileWaiting: the stream is reset at once, before the head, in the body, and while a body is being sent; the
// connection goes on.
func TestClientGoesWhileWaiting(t *testing.T) {
	for name, tc := range map[string]struct {
		head bool
		body forward.Source
	}{
		"head":               {false, nil},
		"body":               {true, nil},
		"head with a body":   {false, &stuck{make(chan struct{})}},
		"in an early answer": {true, &stuck{make(chan struct{})}},
	} {
		t.Run(name, func(t *testing.T) {
			said, reset := make(chan struct{}, 9), make(chan string, 9)
			addr := speak(t, func(r *raw) {
				id := r.asked()
				if tc.head {
					_ = r.headers(id, false, ":status", "200")
				}
				said <- struct{}{}
				reset <- r.next()
				_ = r.headers(r.asked(), true, ":status", "200")
				r.drain()
			})
			ps := newPools(t, PeerSettings{})
			p, _ := peerAt(t, ps, "http", addr)
			ctx, cancel := context.WithCancel(t.Context())
			b := ps.Opener(Wire{}).Open(ctx, p, false)
			r := want("/")
			if tc.body != nil {
				r.Body, r.Length = tc.body, -1
			}
			go func() {
				<-said
				if s, ok := tc.body.(*stuck); ok {
					<-s.reading
				}
				time.Sleep(10 * time.Millisecond)
				cancel()
			}()
			_, err := got(b, r)
			if err == nil {
				t.Fatal("no error")
			}
			b.Close()
			if got := <-reset; got != "RST 1 CANCEL" {
				t.Errorf("the peer saw %s", got)
			}
			if _, err := one(t.Context(), ps.Opener(Wire{}), p, want("/")); err != nil {
				t.Error(err)
			}
			if n := p.Link.(*Pool).open(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestBodyOfTheClient: when it can't be read the stream is reset, and nobody takes that for the peer's failure.
func TestBodyOfTheClient(t *testing.T) {
	reset := make(chan string, 3)
	addr := speak(t, func(r *raw) {
		for r.asked() != 0 {
			for {
				if f := r.next(); !strings.HasPrefix(f, "DATA") {
					reset <- f
					break
				}
			}
		}
	})
	ps := newPools(t, PeerSettings{})
	p, _ := peerAt(t, ps, "http", addr)
	for name, body := range map[string]forward.Source{"fails": &broken{}, "too short": newText("ab"), "too long": newText("abcdef")} {
		r := want("/")
		r.Body, r.Length = body, 4
		if _, err := one(t.Context(), ps.Opener(Wire{}), p, r); classOf(t, err) != forward.ClientBody {
			t.Errorf("%s: %v", name, err)
		}
		if got := <-reset; !strings.HasPrefix(got, "RST") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

type broken struct{ text }

func (*broken) Read([]byte) (int, error) { return 0, errors.New("the client is gone") }
