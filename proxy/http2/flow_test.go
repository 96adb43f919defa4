package http2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestLargeBodies: bodies that are many times the windows go both ways whole, several at once over one connection.
func TestLargeBodies(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			d := listen(t, limitsForTests(), secure, func(_ context.Context, r *forward.Request, c forward.Client) {
				_ = c.Head(200, nil, -1)
				b := make([]byte, 20<<10)
				for {
					n, err := r.Body.Read(b)
					if n > 0 && c.Write(b[:n]) != nil {
						return
					}
					if err != nil {
						if errors.Is(err, io.EOF) {
							_ = c.End(nil)
						}
						return
					}
				}
			})
			scheme := map[bool]string{false: "http", true: "https"}[secure]
			cl := caller(t, secure)
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					body := make([]byte, 3<<20)
					r := rand.NewChaCha8([32]byte{byte(i)})
					_, _ = r.Read(body)
					res, err := cl.Post(scheme+"://"+d.addr, "", bytes.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := io.ReadAll(res.Body)
					if err != nil || sha256.Sum256(got) != sha256.Sum256(body) {
						t.Errorf("%d bytes, %v", len(got), err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestWindows: not a byte more than the client takes is sent, and the rest once it takes more.
func TestWindows(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, strings.Repeat("x", 100)) })
	r := dialRaw(t, d.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	_ = r.headers(1, true, get()...)
	r.until("HEADERS 1 200 end=false")
	r.until("DATA 1 10 end=false")
	_ = r.fr.WriteWindowUpdate(1, 5)
	r.until("DATA 1 5 end=false")
	_ = r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 30}) // 20 more for each stream
	r.until("DATA 1 20 end=false")
	_ = r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) // 30 fewer: below nothing
	_ = r.fr.WriteWindowUpdate(1, 29)
	_ = r.fr.WriteWindowUpdate(1, 30)
	r.until("DATA 1 29 end=false")
	_ = r.fr.WriteWindowUpdate(1, 1000)
	r.until("DATA 1 36 end=true")
}

// TestWindowsOfOurs: a client that sends more than it may is cut off, and bodies that nobody reads hold up no others.
func TestWindowsOfOurs(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		if r.Body != nil {
			<-block
		}
		say(c, 200, "x")
	})
	r := dialRaw(t, d.addr)
	_ = r.headers(1, false, post()...)
	for range streamWindow / frameSize {
		_ = r.fr.WriteData(1, false, make([]byte, frameSize))
	}
	_ = r.headers(3, true, get()...)
	r.until("DATA 3 1 end=true")
	_ = r.fr.WriteData(1, false, []byte("x"))
	r.until("RST 1 FLOW_CONTROL_ERROR")
	_ = r.headers(5, true, get()...)
	r.until("DATA 5 1 end=true")
}

// TestExpect: a client that asks whether its body is wanted is told so when somebody reads it.
func TestExpect(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		if forward.Get(r.Fields, "Expect") != nil {
			t.Error("the field goes on")
		}
		b, err := io.ReadAll(readerOf{r.Body})
		if err != nil {
			t.Error(err)
		}
		say(c, 200, string(b))
	})
	r := dialRaw(t, d.addr)
	_ = r.headers(1, false, post("expect", "100-continue")...)
	r.until("HEADERS 1 100 end=false")
	_ = r.fr.WriteData(1, true, []byte("ab"))
	r.until("HEADERS 1 200 end=false")
	r.until("DATA 1 2 end=true")
}

// TestEarlyAnswer: an answer that is whole before the request is says that the rest is not wanted; what comes all the same
// is no error.
func TestEarlyAnswer(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, "x") })
	r := dialRaw(t, d.addr)
	_ = r.headers(1, false, post()...)
	r.until("DATA 1 1 end=true")
	r.until("RST 1 NO_ERROR")
	_ = r.fr.WriteData(1, false, []byte("late"))
	_ = r.headers(1, true, "x-late", "trailer")
	_ = r.headers(3, true, get()...)
	r.until("DATA 3 1 end=true")
}

// TestStreamsAtOnce: more than are allowed are refused, and can be asked for again.
func TestStreamsAtOnce(t *testing.T) {
	s := limitsForTests()
	s.ClientStreams = 2
	goOn := make(chan struct{})
	d := listen(t, s, false, func(_ context.Context, _ *forward.Request, c forward.Client) {
		<-goOn
		say(c, 200, "x")
	})
	r := dialRaw(t, d.addr)
	for _, id := range []uint32{1, 3, 5} {
		_ = r.headers(id, true, get()...)
	}
	r.until("RST 5 REFUSED_STREAM")
	close(goOn)
	r.until("DATA 3 1 end=true")
	within(t, 5*time.Second, "both end", func() bool { return d.server.Stats().Writing == 0 })
	_ = r.headers(7, true, get()...)
	r.until("DATA 7 1 end=true")
}

// TestHeads: cookies are joined, a head that is too large is answered with 431, or with what the limits of a file say, and
// the connection goes on.
func TestHeads(t *testing.T) {
	s := limitsForTests()
	s.ClientMax, s.ClientLine = 4<<10, 1<<10
	seen := make(chan string, 10)
	d := listen(t, s, false, func(_ context.Context, r *forward.Request, c forward.Client) {
		seen <- fmt.Sprint(r.Refuse, " ", r.Invalid, " ", string(forward.Get(r.Fields, "cookie")))
		say(c, 200, "x")
	})
	r := dialRaw(t, d.addr)
	long := strings.Repeat("y", 900)
	for i, tc := range []struct {
		fields []string
		want   string
	}{
		{get("cookie", "a=1", "x", "y", "cookie", "b=2"), "0  a=1; b=2"},
		{get("a", long, "b", long, "c", long, "d", long, "e", long), "431 the header is too large "},
		{get("a", long+long), "400 a header field is too long "},
		{[]string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/" + long + long}, "414 the request's target is too long "},
		{get(), "0  "},
	} {
		_ = r.headers(uint32(2*i+1), true, tc.fields...)
		r.until(fmt.Sprintf("DATA %d 1 end=true", 2*i+1))
		if got := <-seen; got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// TestNothingIsLeftOfARequest: memory that is used again says nothing of the request before.
func TestNothingIsLeftOfARequest(t *testing.T) {
	var mixed atomic.Int32
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		id := string(forward.Get(r.Fields, "x-id"))
		body := ""
		if r.Body != nil {
			b, _ := io.ReadAll(readerOf{r.Body})
			body = string(b)
		}
		if body != "" && body != id || len(r.Fields) > 5 || string(r.Target) != "/"+id {
			mixed.Add(1)
		}
		_ = c.Head(200, []forward.Field{field("X-Id", id)}, -1)
		_ = c.(forward.Finisher).Finish([]byte(id), nil)
	})
	cl := caller(t, false)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 100 {
				id := fmt.Sprint(worker, ".", i)
				var body io.Reader
				if i%2 == 0 {
					body = strings.NewReader(id)
				}
				req, _ := http.NewRequest("POST", "http://"+d.addr+"/"+id, body)
				req.Header.Set("X-Id", id)
				res, err := cl.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				if b, _ := io.ReadAll(res.Body); string(b) != id || res.Header.Get("X-Id") != id {
					t.Errorf("%q, %q for %q", b, res.Header.Get("X-Id"), id)
				}
			}
		})
	}
	all.Wait()
	if mixed.Load() > 0 {
		t.Errorf("%d requests had something of others", mixed.Load())
	}
}
