package http1

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestAtHand: what is left of a body is given in one piece when it is there with its end, and else nothing has happened.
func TestAtHand(t *testing.T) {
	const length, chunked = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	trick := "a\r\nab\r\n0\r\n\r\nc\r\n0\r\n\r\n" // a chunk that ends as a body does
	half := strings.Index(trick, "c\r\n")
	for name, tc := range map[string]struct {
		now, later string
		body       string
		all, kept  bool
	}{
		"length":                   {length + "hello", "", "hello", true, true},
		"length, and more":         {length + "hello!", "", "hello", true, false},
		"part of the length":       {length + "hell", "o", "hello", false, true},
		"part, and more":           {length + "hell", "o!", "hello", false, false},
		"nothing of the length":    {length, "hello", "hello", false, true},
		"no body":                  {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "", false, true},
		"chunks":                   {chunked + "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", "", "hello", true, true},
		"chunks, and more":         {chunked + "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n0\r\n\r\n", "", "hello", true, false},
		"an empty body in chunks":  {chunked + "0\r\n\r\n", "", "", true, true},
		"chunks with a trailer":    {chunked + "5\r\nhello\r\n0\r\nA: b\r\n\r\n", "", "hello", false, true},
		"part of the chunks":       {chunked + "5\r\nhel", "lo\r\n0\r\n\r\n", "hello", false, true},
		"what looks like the end":  {chunked + trick[:half], trick[half:], "ab\r\n0\r\n\r\nc", false, true},
		"what looks like two ends": {chunked + trick, "", "ab\r\n0\r\n\r\nc", true, true},
		"until the close":          {"HTTP/1.1 200 OK\r\n\r\nhello0\r\n\r\n", "", "hello0\r\n\r\n", false, false},
		"more than fits twice":     {chunked + "2328\r\n" + strings.Repeat("x", 9000) + "\r\n0\r\n\r\n", "", strings.Repeat("x", 9000), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			addr := listen(t, func(c net.Conn) {
				readRequest(c)
				_, _ = io.WriteString(c, tc.now)
				<-asked
				_, _ = io.WriteString(c, tc.later)
				if strings.HasPrefix(name, "until") {
					return
				}
				_, _ = io.Copy(io.Discard, c)
			})
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
			b := held(t, ps, p)
			body := b.Body()
			rest, all := body.(forward.AtHand).AtHand()
			got := string(rest)
			close(asked)
			if !all {
				if rest != nil {
					t.Errorf("%q, though that is not all", rest)
				}
				read, err := io.ReadAll(readerOf{body})
				if got = string(read); err != nil {
					t.Error(err)
				}
			}
			if n, err := body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%d, %v behind the end", n, err)
			}
			if rest, all := body.(forward.AtHand).AtHand(); rest != nil || all {
				t.Errorf("%q behind the end", rest)
			}
			if got != tc.body || all != tc.all {
				t.Errorf("%q, at hand: %v", got, all)
			}
			b.Close()
			if n := p.Link.(*Pool).shelf.count; (n == 1) != tc.kept {
				t.Errorf("%d connections are kept", n)
			}
			b.(*attempt).Release()
		})
	}
}

// TestAtHandStays: what was given stays as it is while others use the connection, and is not given before the head nor
// without a body.
func TestAtHandStays(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: listen(t, func(c net.Conn) {
		for head := readRequest(c); head != ""; head = readRequest(c) {
			_, target, _ := strings.Cut(head, " ")
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\n"+target[:2])
		}
	})})
	type open struct {
		b      forward.Backend
		fields []forward.Field
		rest   []byte
		want   string
	}
	var all []open
	for _, target := range []string{"/a", "/b", "/c"} {
		b := ps.Open(context.Background(), p, false)
		if _, ok := b.Body().(forward.AtHand).AtHand(); ok {
			t.Error("before the head")
		}
		r := get()
		r.Target = []byte(target)
		_, fields, err := exchanged(b, r)
		rest, ok := b.Body().(forward.AtHand).AtHand()
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		b.Close()
		all = append(all, open{b, fields, rest, target})
	}
	for _, o := range all {
		if string(o.rest) != o.want || string(forward.Get(o.fields, "a")) != "b" {
			t.Errorf("%q, %q; want %q", o.rest, o.fields, o.want)
		}
	}
	for _, o := range all {
		o.b.(*attempt).Release()
		if _, ok := o.b.Body().(forward.AtHand).AtHand(); ok {
			t.Error("of an attempt that was given back")
		}
	}
	if n := p.Link.(*Pool).open(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
