package wire

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy"
)

// chaosLane is a lane with short limits, since stalls are waited for.
func chaosLane(w string) (*Lane, error) {
	return NewLane(func(b *Backend) (*Proxy, error) {
		if w == "file" {
			return FromFile(func(listen string) string {
				return fmt.Sprintf("server { listen %s; client_body_timeout 300ms; client_header_timeout 300ms; proxy_read_timeout 150ms; proxy_next_upstream off;\n"+
					"proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host; location / { proxy_pass http://back; } }\nupstream back { server %s max_fails=0; keepalive 8; }", listen, b.Addr)
			})
		}
		return FromTopology(func(c *proxy.Config) {
			c.Engine.ClientHeader, c.Engine.ClientBody = 300*time.Millisecond, 300*time.Millisecond
			c.Peers.Read = 150 * time.Millisecond
		}, b.Addr)
	})
}

// inChaos runs a test in each way, and looks that all that was taken is given back.
func inChaos(t *testing.T, test func(t *testing.T, l *Lane)) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			runtime.GC()
			files, routines := descriptors(), runtime.NumGoroutine()
			l, err := chaosLane(w.name)
			if err != nil {
				t.Fatal(err)
			}
			var wrong atomic.Int64
			l.Backend.Say(chaotic(&wrong))
			idle := runtime.NumGoroutine()
			test(t, l)
			if n := wrong.Load(); n > 0 {
				t.Errorf("the backend got %d requests that nobody sent", n)
			}
			// While the proxy runs: what is left are connections that it keeps to the backend, a goroutine of the test's for each.
			back(t, "goroutines while it runs", func() int { return runtime.NumGoroutine() - l.Backend.Conns() }, idle+4)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			back(t, "goroutines", runtime.NumGoroutine, routines)
			back(t, "files", descriptors, files)
			back(t, "pipes", pipes, keptPipes)
			if t.Failed() {
				t.Log(openFiles())
			}
		})
	}
}

// back waits until a number is down to what it was.
func back(t *testing.T, what string, now func() int, base int) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); now() > base; time.Sleep(10 * time.Millisecond) {
		runtime.GC()
		if time.Now().After(end) {
			t.Errorf("%d %s, %d before", now(), what, base)
			return
		}
	}
}

// ask is a client that keeps to the rules: it sends its job and looks at the answer.
func ask(t *testing.T, l *Lane, j job, _ *rand.Rand) {
	c, err := Dial(l.Addr, 10*time.Second)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	go func() { _, _ = c.Write(j.request()) }()
	m, err := ReadAnswer(c.In, false)
	if f := j.check(m, err); f != "" {
		t.Errorf("%+v: %s", j, f)
	}
}

// TestBackendsThatBreakAtEveryByte: what is cut is never taken for whole, and nobody gets another's bytes.
func TestBackendsThatBreakAtEveryByte(t *testing.T) {
	var all []job
	for _, kind := range []string{"length", "chunks", "close", "none"} {
		for _, then := range []string{"close", "reset", "garbage", "stall"} {
			for at := range len(job{id: "0000", kind: kind, size: 40}.answer()) {
				if then == "stall" && at%5 > 0 { // each takes the read timeout
					continue
				}
				all = append(all, job{id: fmt.Sprintf("%04d", len(all)), kind: kind, size: 40, at: at, then: then})
			}
		}
	}
	inChaos(t, func(t *testing.T, l *Lane) { storm(t, l, 16, listOf(all), ask) })
	t.Logf("%d answers", len(all))
}

// vanish is a client that goes away after so many bytes of its request, or of the answer.
func vanish(t *testing.T, l *Lane, j job, r *rand.Rand) {
	c, err := Dial(l.Addr, 10*time.Second)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second)) // an answer of ours may be shorter than what it waits for
	request := j.request()
	if j.at < len(request) {
		_, _ = c.Write(request[:j.at])
		if r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
		}
	} else {
		go func() { _, _ = c.Write(request) }()
		_, _ = io.CopyN(io.Discard, c.In, int64(j.at-len(request)))
	}
	if r.IntN(2) == 0 {
		_ = c.SetLinger(0)
	}
}

// TestClientsThatVanishAtEveryByte: of a request with and without a body, and of an answer.
func TestClientsThatVanishAtEveryByte(t *testing.T) {
	var all []job
	for _, post := range []int{0, 41, 42} {
		j := job{id: "0000", kind: "length", size: 40, then: "on", post: post}
		for at := range len(j.request()) + len(j.answer()) {
			j.id, j.at = fmt.Sprintf("%04d", len(all)), at
			all = append(all, j)
		}
	}
	inChaos(t, func(t *testing.T, l *Lane) {
		storm(t, l, 16, listOf(all), vanish)
		ask(t, l, job{id: "last", kind: "length", size: 40, then: "on"}, nil)
	})
	t.Logf("%d requests", len(all))
}

// TestChaos: everything at once at random, over connections that are kept, small and large, with clients that vanish between
// those that look at each byte.
func TestChaos(t *testing.T) {
	inChaos(t, func(t *testing.T, l *Lane) {
		var whole atomic.Int64
		give := func(r *rand.Rand, number int64) job {
			j := job{id: fmt.Sprintf("%08d", number), kind: []string{"length", "length", "chunks", "chunks", "close", "none"}[r.IntN(6)], then: "on", at: 1 << 30}
			j.size = []int{0, 1, 40, 3000, 70_000, 300_000}[r.IntN(6)]
			if r.IntN(3) == 0 {
				j.post = []int{1, 100, 5000, 70_001, 200_000}[r.IntN(5)]
			}
			if r.IntN(4) == 0 {
				j.then = []string{"close", "reset", "garbage", "more", "early", "stall"}[r.IntN(6)]
				if j.then == "garbage" || j.then == "more" {
					j.size = min(j.size, 3000) // fits into one write
				}
				if r.IntN(3) > 0 && j.then != "more" && j.then != "early" {
					j.at = r.IntN(len(j.answer()) + 1)
				}
			}
			return j
		}
		storm(t, l, 24, untilThen(chaosTime(), give), func(t *testing.T, l *Lane, j job, r *rand.Rand) {
			if r.IntN(5) == 0 {
				j.at = r.IntN(len(j.request()) + len(j.answer()))
				vanish(t, l, j, r)
				return
			}
			whole.Add(converse(t, l, j, give, r))
		})
		if whole.Load() < 30 {
			t.Errorf("only %d answers were whole", whole.Load())
		}
		t.Logf("%d whole answers", whole.Load())
	})
}

// converse has several jobs over one connection, as long as that is kept, and some of them pipelined. It gives the number of whole answers.
func converse(t *testing.T, l *Lane, j job, give func(*rand.Rand, int64) job, r *rand.Rand) (whole int64) {
	c, err := Dial(l.Addr, 20*time.Second)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer c.Close()
	for range 1 + r.IntN(6) {
		batch := []job{j}
		for range r.IntN(6) - 3 {
			next := give(r, int64(r.IntN(1<<30)))
			batch = append(batch, next)
		}
		var out []byte
		for _, j := range batch {
			out = append(out, j.request()...)
		}
		go func() { _, _ = c.Write(out) }()
		for _, j := range batch {
			m, err := ReadAnswer(c.In, false)
			if f := j.check(m, err); f != "" {
				t.Errorf("%+v: %s", j, f)
				return whole
			}
			closes, _ := m.Get("Connection")
			if err != nil || closes == "close" {
				return whole
			}
			whole++
		}
		j = give(r, int64(r.IntN(1<<30)))
	}
	return whole
}
