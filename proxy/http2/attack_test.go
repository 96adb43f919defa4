package http2

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/upstrand/upstrand/proxy/forward"
)

// split sends a head in as many frames as it takes.
func (r *raw) split(stream uint32, end bool, fields ...string) {
	b := r.block(fields...)
	n := min(len(b), 16<<10)
	_ = r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: b[:n], EndHeaders: n == len(b), EndStream: end})
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = min(len(b), 16<<10)
		_ = r.fr.WriteContinuation(stream, n == len(b), b[:n])
	}
}

// TestPseudoFieldsTooLarge: a head of which not even the pseudo fields are held is refused like others, and the connection goes on.
func TestPseudoFieldsTooLarge(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) { say(c, max(r.Refuse, 200), "") })
	r := dialRaw(t, d.addr)
	_ = r.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	for i, name := range []string{":method", ":scheme", ":authority", ":path"} {
		fields := get()
		for j := 0; j < len(fields); j += 2 {
			if fields[j] == name {
				fields[j+1] = strings.Repeat("~", 70<<10)
			}
		}
		r.split(uint32(2*i+1), true, fields...)
		r.until(fmt.Sprintf("HEADERS %d 431 end=true", 2*i+1))
	}
	_ = r.headers(99, true, get()...)
	r.until("HEADERS 99 200 end=true")
}

// TestTrailersOfARequestThatIsOver: what comes of them goes nowhere, least of all to a request that has its memory now.
func TestTrailersOfARequestThatIsOver(t *testing.T) {
	var leaked atomic.Int32
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		if string(r.Target) == "/whole" {
			_, _ = io.Copy(io.Discard, readerOf{r.Body})
			leaked.Add(int32(len(r.Body.Trailer())))
		}
		say(c, 200, "")
	})
	other := dialRaw(t, d.addr)
	for i := range uint32(150) {
		r := dialRaw(t, d.addr)
		_ = r.headers(1, false, post()...)
		_ = r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block("x-early", "1"), EndStream: true})
		r.until("HEADERS 1 200 end=true")
		_ = other.headers(2*i+1, false, ":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/whole")
		_ = r.fr.WriteContinuation(1, true, r.block("x-late", "1"))
		_ = r.headers(3, true, get()...)
		r.until("HEADERS 3 200 end=true")
		_ = other.fr.WriteData(2*i+1, true, nil)
		other.until(fmt.Sprintf("HEADERS %d 200 end=true", 2*i+1))
		_ = r.conn.Close()
	}
	if n := leaked.Load(); n > 0 {
		t.Errorf("%d fields of others", n)
	}
}

// TestEmptyContinuations: frames without anything in them end the connection too.
func TestEmptyContinuations(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { say(c, 200, "no") })
	r := dialRaw(t, d.addr)
	go func() {
		_ = r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block(get()...)})
		for range 1 << 20 {
			if r.fr.WriteContinuation(1, false, nil) != nil {
				break
			}
		}
	}()
	began := time.Now()
	if !r.ends() || time.Since(began) > 4*time.Second { // the time limit for a head is 5 s
		t.Error("it goes on")
	}
}

// TestWindowByTheByte: those who wait for the connection's window all get on, however little of it there is at once, or
// all of it.
func TestWindowByTheByte(t *testing.T) {
	const streams, size = 20, 100
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		n := size
		if string(r.Target) == "/first" {
			n = 65535
		}
		say(c, 200, strings.Repeat("x", n))
	})
	r := dialRaw(t, d.addr)
	_ = r.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/first")
	for got := 0; got < 65535; {
		if f, err := r.fr.ReadFrame(); err != nil {
			t.Fatal(err)
		} else if data, ok := f.(*http2.DataFrame); ok {
			got += len(data.Data())
		}
	}
	for i := range uint32(streams) {
		_ = r.headers(2*i+3, true, get()...)
	}
	within(t, 5*time.Second, "all wait", func() bool { return d.server.Stats().Writing == streams })
	said := make(chan struct{})
	go func() {
		defer close(said)
		for range streams * size / 2 {
			_ = r.fr.WriteWindowUpdate(0, 1)
		}
	}()
	got, ended := 0, 0
	for ended < streams {
		if got == streams*size/2 { // all wait again
			<-said
			time.Sleep(10 * time.Millisecond)
			_ = r.fr.WriteWindowUpdate(0, streams*size/2)
		}
		f, err := r.fr.ReadFrame()
		if err != nil {
			t.Fatalf("%v after %d bytes and %d ends", err, got, ended)
		}
		if data, ok := f.(*http2.DataFrame); ok && data.StreamID > 1 {
			if got += len(data.Data()); data.StreamEnded() {
				ended++
			}
		}
	}
	if got != streams*size {
		t.Errorf("%d bytes", got)
	}
}

// TestNoContinueAfterTheHead: who was answered is not told to go on.
func TestNoContinueAfterTheHead(t *testing.T) {
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		_ = c.Head(200, nil, -1)
		_, _ = io.Copy(io.Discard, readerOf{r.Body})
		_ = c.End(nil)
	})
	r := dialRaw(t, d.addr)
	_ = r.headers(1, false, post("expect", "100-continue")...)
	r.until("HEADERS 1 200 end=false")
	time.Sleep(20 * time.Millisecond)
	_ = r.fr.WriteData(1, true, []byte("abc"))
	if f := r.next(); f != "DATA 1 0 end=true" {
		t.Error(f)
	}
}

// TestCookies: they are joined, and what the table of the connection holds of them stays as it is.
func TestCookies(t *testing.T) {
	seen := make(chan string, 2)
	d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
		seen <- string(forward.Get(r.Fields, "cookie"))
		say(c, 200, "")
	})
	r := dialRaw(t, d.addr)
	want := strings.TrimSuffix(strings.Repeat("a=1; ", 1000), "; ")
	var fields []string
	for range 1000 {
		fields = append(fields, "cookie", "a=1")
	}
	for id := uint32(1); id < 9; id += 2 {
		_ = r.headers(id, true, get(fields...)...)
		r.until(fmt.Sprintf("HEADERS %d 200 end=true", id))
		if got := <-seen; got != want {
			t.Fatalf("%d: %d bytes: %.40s…", id, len(got), got)
		}
	}
}

// TestRestingConnection: one that is open and not used has no goroutines beside its own two.
func TestRestingConnection(t *testing.T) {
	hold := make(chan struct{})
	d := listen(t, limitsForTests(), false, func(_ context.Context, _ *forward.Request, c forward.Client) { <-hold; say(c, 200, "") })
	r := dialRaw(t, d.addr)
	ask := func(from uint32) {
		for i := range uint32(mostIdle) {
			_ = r.headers(from+2*i, true, get()...)
		}
		within(t, 5*time.Second, "all are asked", func() bool { return d.server.Stats().Writing == mostIdle })
		for range mostIdle {
			hold <- struct{}{}
			if f := r.next(); !strings.HasSuffix(f, "200 end=true") {
				t.Fatal(f)
			}
		}
	}
	workers := func() int {
		b := make([]byte, 1<<20)
		return strings.Count(string(b[:runtime.Stack(b, true)]), "(*idlers).serve(")
	}
	ask(1)
	within(t, 5*time.Second, "they wait", func() bool { return workers() == mostIdle })
	within(t, 5*time.Second, "they end", func() bool { return workers() == 0 })
	ask(101)
}

// TestClientsThatVanish: whatever they leave behind ends: handlers that write and can't, bodies that were begun, requests
// that are taken back.
func TestClientsThatVanish(t *testing.T) {
	s := limitsForTests()
	d := listen(t, s, false, func(ctx context.Context, r *forward.Request, c forward.Client) {
		switch string(r.Target) {
		case "/wait":
			<-ctx.Done()
		case "/read":
			_, _ = io.Copy(io.Discard, readerOf{r.Body})
			say(c, 200, "")
		default:
			_ = c.Head(200, nil, -1)
			for c.Write(make([]byte, 10000)) == nil {
			}
			c.Abort()
		}
	})
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			r := dialRaw(t, d.addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(n%3) << 14})
			for i := range uint32(100) {
				id, path := 2*i+1, [...]string{"/wait", "/read", "/write"}[i%3]
				_ = r.headers(id, path != "/read", ":method", "POST", ":scheme", "http", ":authority", "a", ":path", path)
				if path == "/read" {
					_ = r.fr.WriteDataPadded(id, false, make([]byte, 1000), make([]byte, 200))
				}
				if i%4 == uint32(n%4) {
					_ = r.fr.WriteRSTStream(id, http2.ErrCodeCancel)
				}
				if n%2 == 0 {
					_ = r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << (i % 15)})
				}
			}
			_ = r.conn.Close()
		})
	}
	all.Wait()
	within(t, 8*time.Second, "all ends", func() bool { s := d.server.Stats(); return s.Active == 0 && s.Writing == 0 })
}
