package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

var storm = flag.Duration("storm", 500*time.Millisecond, "how long TestStorm lasts for each kind of door")

// stormLimit is for one answer: a wait that was forgotten is longer.
const stormLimit = 10 * time.Second

// echoed answers with the target, the body's length and sum, and as many bytes as the target asks for: /tag/bytes/framing.
func echoed(_ context.Context, r *forward.Request, c forward.Client) {
	if r.Invalid != "" {
		forward.Plain(c, r, r.Refuse, r.Invalid)
		return
	}
	sum, length := 0, 0
	if r.Body != nil {
		buf := make([]byte, 3000)
		for {
			n, err := r.Body.Read(buf)
			for _, b := range buf[:n] {
				sum += int(b)
			}
			if length += n; errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				c.Abort()
				return
			}
		}
	}
	parts := strings.Split(string(r.Target), "/")
	size, _ := strconv.Atoi(parts[2])
	said := fmt.Appendf(nil, "%s %d %d\n", r.Target, length, sum)
	text := append(said, bytes.Repeat([]byte{parts[1][0]}, size)...)
	announced := int64(len(text))
	if parts[3] == "chunks" {
		announced = -1
	}
	if c.Head(200, nil, announced) != nil {
		return
	}
	if socket, ok := c.(forward.Splicer).Socket(); ok && parts[3] == "spliced" {
		n, err := socket.Write(text)
		if c.(forward.Splicer).Sent(int64(n), err) == nil {
			_ = c.End(nil)
		}
		return
	}
	for len(text) > 20000 {
		if c.Write(text[:20000]) != nil {
			return
		}
		text = text[20000:]
	}
	_ = c.(forward.Finisher).Finish(text, nil)
}

// stormRequest is one, and the answer's body.
func stormRequest(rnd *rand.Rand) (text []byte, want string) {
	sizes := []int{0, 1, 100, 4000, 30000, 300000}
	size := sizes[min(rnd.IntN(12), rnd.IntN(len(sizes)))]
	framing := []string{"length", "chunks", "spliced"}[rnd.IntN(3)]
	tag := string(rune('a' + rnd.IntN(26)))
	target := fmt.Sprintf("/%s/%d/%s", tag+strconv.Itoa(rnd.IntN(1e6)), size, framing)
	body := bytes.Repeat([]byte{byte(rnd.IntN(256))}, []int{0, 5, 700, 9000, 70000}[min(rnd.IntN(8), rnd.IntN(5))])
	sum := 0
	for _, b := range body {
		sum += int(b)
	}
	want = fmt.Sprintf("%s %d %d\n%s", target, len(body), sum, strings.Repeat(tag, size))
	switch {
	case len(body) == 0:
		text = fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", target)
	case rnd.IntN(2) == 0:
		text = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body)
	default:
		text = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", target)
		for len(body) > 0 {
			n := 1 + rnd.IntN(len(body))
			text = fmt.Appendf(text, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		text = append(text, "0\r\n\r\n"...)
	}
	return text, want
}

// pour writes in pieces, some of them after a pause.
func pour(c net.Conn, text []byte, rnd *rand.Rand) error {
	for len(text) > 0 {
		n := len(text)
		if rnd.IntN(3) > 0 {
			n = 1 + rnd.IntN(n)
		}
		if _, err := c.Write(text[:n]); err != nil {
			return err
		}
		if text = text[n:]; len(text) > 0 && rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(rnd.IntN(1000)) * time.Microsecond)
		}
	}
	return nil
}

// rounds sends some requests at once and reads their answers, again and again. The last ones come with the end of what is
// sent, or all is dropped.
func rounds(open func() (net.Conn, error), rnd *rand.Rand, until time.Time, answers *atomic.Int64) error {
	for time.Now().Before(until) {
		c, err := open()
		if err != nil {
			return err
		}
		if err := onOne(c, rnd, answers); err != nil {
			_ = c.Close()
			return fmt.Errorf("%v: %w", c.LocalAddr(), err)
		}
		_ = c.Close()
	}
	return nil
}

func onOne(c net.Conn, rnd *rand.Rand, answers *atomic.Int64) error {
	in := newAnswers(c)
	for left := rnd.IntN(30); left >= 0; left-- {
		var text []byte
		var wants []string
		for range 1 + min(rnd.IntN(5), rnd.IntN(5)) {
			one, want := stormRequest(rnd)
			text, wants = append(text, one...), append(wants, want)
		}
		_ = c.SetDeadline(time.Now().Add(stormLimit))
		if left == 0 && rnd.IntN(3) == 0 { // a client that vanishes
			return pour(c, text[:rnd.IntN(len(text))], rnd)
		}
		sent := make(chan error, 1)
		half, last := rnd, left == 0
		go func() {
			err := pour(c, text, half)
			if err == nil && last {
				err = closeWrite(c)
			}
			sent <- err
		}()
		for i, want := range wants {
			got, err := in.next()
			if err != nil || got != want {
				return fmt.Errorf("answer %d of %d: %.60q…, %w, want %.60q…", i+1, len(wants), got, err, want)
			}
			answers.Add(1)
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	return nil
}

// TestStorm: clients that send in pieces, with pauses, several requests at once, bodies of all kinds, and that end their side
// with the last request or vanish. Each gets the answers to its own requests, in order, and none waits for ever.
func TestStorm(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS"}[secure], func(t *testing.T) {
			var with []func(*Options)
			if secure {
				with = append(with, withTLS(t))
			}
			srv, addr := serve(t, Settings{TLS: secure}, echoed, with...)
			open := func() (net.Conn, error) {
				c, err := net.Dial("tcp", addr)
				if err != nil || !secure {
					return c, err
				}
				return tls.Client(&recordsOnly{Conn: c}, &tls.Config{InsecureSkipVerify: true}), nil
			}
			var answers atomic.Int64
			var clients sync.WaitGroup
			until := time.Now().Add(*storm)
			for i := range 64 {
				clients.Go(func() {
					if err := rounds(open, rand.New(rand.NewPCG(uint64(i), uint64(until.UnixNano()))), until, &answers); err != nil {
						t.Error(err)
					}
				})
			}
			clients.Wait()
			t.Logf("%d answers", answers.Load())
			eventually(t, "all connections are over", func() bool { return srv.Stats().Active == 0 })
		})
	}
}
