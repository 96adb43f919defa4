package proxy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/http1"
)

// manySwaps is how often the topology changes, in what time, and under how many WebSockets. UPSTRAND_TEST_SWAPS=1000 is the
// full form: 1,000 in 60 s under 500.
func manySwaps() (swaps int, every time.Duration, sockets int) {
	if n, _ := strconv.Atoi(os.Getenv("UPSTRAND_TEST_SWAPS")); n > 0 {
		return n, 60 * time.Second / 1000, 500
	}
	return 200, 10 * time.Millisecond, 50
}

// TestManySwaps: of what a change does not touch nothing is closed, nothing fails, no pick is out of order; and what
// comes and goes leaves nothing behind.
func TestManySwaps(t *testing.T) {
	swaps, every, sockets := manySwaps()
	w := newWorld(t, func(c *Config) { c.Peers = http1.Settings{Drain: 50 * time.Millisecond} })
	var moving []string
	for i := range 6 {
		moving = append(moving, newBackend(t, fmt.Sprint("m", i), nil).addr())
	}
	turn := func(i int) {
		var list []topology.Instance
		for k := range 2 + i%3 {
			n := i + k // most of the last turn stay, under another weight
			list = append(list, topology.Instance{ID: fmt.Sprint("m", n), Addr: moving[n%len(moving)], Incarnation: int64(1 + i/7),
				Order: int64(1 + n), Weight: 1 + i%4})
		}
		w.set("moving", list...)
		socket := instance("sock", w.services["sockets"][0].Addr)
		w.set("sockets", socket, topology.Instance{ID: "other", Addr: moving[0], Order: 2, Incarnation: int64(i), Weight: 1 + i%5})
		w.apply()
	}
	w.set("sockets", instance("sock", upgraded(t, "websocket", nil)))
	steady := w.steadyService()
	w.apply()
	held := w.holdSockets(sockets)
	turn(0)

	load := w.ask("/moving", 3)
	order := steady.follow()
	var early uint64
	began := time.Now()
	for i := 1; i <= swaps; i++ {
		turn(i)
		if i == swaps/4 {
			early = heap()
		}
		time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
	}
	took := time.Since(began)
	late := heap()
	failed, asked := load()
	picks, wrong := order()
	if failed != 0 || wrong != "" {
		t.Errorf("%d of %d requests failed; the steady service: %s", failed, asked, wrong)
	}
	if n := held.end(); n != 0 {
		t.Errorf("%d of %d WebSockets were closed", n, sockets)
	}
	if late > early+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes between a quarter of the swaps and the last one", early, late)
	}
	eventually(t, "nothing is left of those who left", func() bool { return w.p.pools.Busy() == 0 })
	t.Logf("%d swaps in %v, %d WebSockets, %d requests, %d picks in order, heap %d and %d KB", swaps, took.Round(time.Millisecond), sockets, asked, picks, early>>10, late>>10)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// steadyService is one whose order of picks is known.
type steadyService struct {
	w *world
	// reference is a group of the same servers that nothing ever happens to.
	reference *balance.Group
}

func (w *world) steadyService() *steadyService {
	w.t.Helper()
	var (
		list    []topology.Instance
		servers []balance.Server
	)
	for i, weight := range []int{5, 3, 2, 1} {
		id := fmt.Sprint("s", i)
		in := instance(id, newBackend(w.t, id, nil).addr())
		in.Weight = weight
		list = append(list, in)
		servers = append(servers, balance.Server{Key: balance.Key{ID: id}, Addr: in.Addr, Weight: weight, MaxFails: 1, FailTimeout: 10 * time.Second})
	}
	w.set("steady", list...)
	g, err := balance.NewGroup("steady", balance.Env{}, balance.Spec{Servers: servers})
	if err != nil {
		w.t.Fatal(err)
	}
	return &steadyService{w, g}
}

// follow asks one request after the other and compares who answers. What it gives ends that.
func (s *steadyService) follow() func() (picks int, wrong string) {
	var (
		stop  atomic.Bool
		done  = make(chan struct{})
		picks int
		wrong string
	)
	go func() {
		defer close(done)
		for ; !stop.Load() && wrong == ""; picks++ {
			a, err := s.w.try("GET", "/steady", nil)
			pass := s.reference.Begin(balance.NoLimit, nil)
			want, _ := pass.Pick()
			pass.End(balance.Succeeded)
			if err != nil || a.body != want.ID() {
				wrong = fmt.Sprintf("pick %d gave %q (%v), want %s", picks, a.body, err, want.ID())
			}
		}
	}()
	return func() (int, string) {
		stop.Store(true)
		<-done
		return picks, wrong
	}
}

// ask has n clients ask for a path all the time. What it gives ends that.
func (w *world) ask(path string, n int) func() (failed, asked int64) {
	var (
		stop             atomic.Bool
		failed, answered atomic.Int64
		going            sync.WaitGroup
	)
	for range n {
		going.Go(func() {
			for !stop.Load() {
				a, err := w.try("GET", path, nil)
				if answered.Add(1); err != nil || a.status != http.StatusOK {
					failed.Add(1)
					w.t.Logf("%+v, %v", a, err)
				}
				time.Sleep(time.Millisecond) // the machine has others to serve
			}
		})
	}
	return func() (int64, int64) {
		stop.Store(true)
		going.Wait()
		return failed.Load(), answered.Load()
	}
}

// heldSockets are WebSockets that each send something now and then.
type heldSockets struct {
	stop   chan struct{}
	going  sync.WaitGroup
	broken atomic.Int64
}

func (w *world) holdSockets(n int) *heldSockets {
	w.t.Helper()
	h := &heldSockets{stop: make(chan struct{})}
	for range n {
		c, in := upgrade(w.t, w.addr, "/sockets", "websocket")
		_ = c.SetDeadline(time.Time{})
		h.going.Go(func() {
			defer c.Close()
			got := make([]byte, len(maskedText))
			for {
				_, err := c.Write(maskedText)
				if err == nil {
					_, err = io.ReadFull(in, got)
				}
				if err != nil {
					h.broken.Add(1)
					return
				}
				select {
				case <-h.stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return h
}

func (h *heldSockets) end() int64 {
	close(h.stop)
	h.going.Wait()
	return h.broken.Load()
}
