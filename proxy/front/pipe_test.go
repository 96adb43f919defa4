package front

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy/forward"
)

// pipes is a listener of connections that are no sockets.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.over:
	default:
		close(p.over)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestTimes: the limits as they are by themselves, on connections that are no sockets, and that a request served in time is
// no reason to end.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		srv := NewServer(Settings{}, Options{Log: zerolog.Nop(), Handler: handlerFunc(func(ctx context.Context, r *forward.Request, c forward.Client) {
			if r.Body != nil {
				_, err := io.Copy(io.Discard, r.Body)
				if err != nil {
					c.Abort()
					return
				}
			}
			time.Sleep(10 * time.Minute) // that is for the handler to limit
			plain(ctx, r, c)
		})})
		done := make(chan error)
		go func() { done <- srv.Serve(l) }()
		for _, tc := range []struct {
			name, text string
			answers    int
			ends       time.Duration // after the text, or the last answer
		}{
			{"silent", "", 0, time.Minute}, {"half a head", "GET / HTTP/1.1\r\n", 0, time.Minute}, {"unused", get, 1, 75 * time.Second},
			{"half a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", 0, time.Minute}, {"pipelined", get + get, 2, 75 * time.Second},
		} {
			ours, theirs := net.Pipe()
			l.conns <- theirs
			go func() { _, _ = io.WriteString(ours, tc.text) }()
			for range tc.answers {
				hear(t, ours, "GET /\n")
			}
			began := time.Now()
			if got, _ := io.ReadAll(ours); len(got) > 0 {
				t.Errorf("%s: %q", tc.name, got)
			}
			if took := time.Since(began); took < tc.ends || took > tc.ends+time.Second {
				t.Errorf("%s: it ended after %v, want %v", tc.name, took, tc.ends)
			}
		}
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// deaf takes nothing of what is sent to it.
type deaf struct {
	net.Conn
	over chan struct{}
}

func (d deaf) Read([]byte) (int, error) { <-d.over; return 0, io.EOF }

// left tells when it is closed.
type left struct {
	net.Conn
	closed chan time.Time
}

func (l left) Close() error {
	select {
	case l.closed <- time.Now():
	default:
	}
	return l.Conn.Close()
}

// TestDeafToAHandshake: a client that says hello and does not take the answer has no longer for it than a silent one.
func TestDeafToAHandshake(t *testing.T) {
	options := Options{Log: zerolog.Nop(), Handler: handlerFunc(plain)}
	withTLS(t)(&options)
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		srv := NewServer(Settings{TLS: true}, options)
		done := make(chan error)
		go func() { done <- srv.Serve(l) }()
		ours, theirs := net.Pipe()
		began, closed := time.Now(), make(chan time.Time, 1)
		l.conns <- left{theirs, closed}
		client := deaf{ours, make(chan struct{})}
		shaken := make(chan error)
		go func() { shaken <- tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
		select {
		case at := <-closed:
			if took := at.Sub(began); took < time.Minute || took > time.Minute+time.Second {
				t.Errorf("it ended after %v", took)
			}
		case <-time.After(time.Hour):
			t.Error("it is still there")
		}
		close(client.over)
		if err := <-shaken; err == nil {
			t.Error("a handshake without an answer")
		}
		_ = ours.Close()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
