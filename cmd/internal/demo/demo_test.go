package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/heartbeat"
)

const topic = "beats"

// world is a fleet on a broker, and what it has said so far.
type world struct {
	t       *testing.T
	control *httptest.Server
	fleet   *Fleet
	stop    func()

	mu    sync.Mutex
	beats []heartbeat.Beat
}

func newWorld(t *testing.T) *world {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
	if err != nil {
		t.Fatal(err)
	}
	addr := broker.ListenAddrs()[0]
	transport := &kafka.Transport{}
	w := &world{t: t, fleet: NewFleet([]Service{{Name: "whoami"}}, Beats{
		Brokers: []string{addr}, Transport: transport, Topic: topic, Interval: time.Second,
	}, zerolog.Nop())}
	w.control = httptest.NewServer(w.fleet.Control())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.fleet.Run(ctx) }()
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{addr}, Topic: topic, MaxWait: 50 * time.Millisecond})
	readCtx, stopReading := context.WithCancel(context.Background())
	read := make(chan struct{})
	go func() { defer close(read); w.read(readCtx, reader) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		w.stop()
		stopReading()
		<-read
		_ = reader.Close()
		w.control.Close()
		transport.CloseIdleConnections()
		broker.Close()
	})
	return w
}

func (w *world) read(ctx context.Context, r *kafka.Reader) {
	for ctx.Err() == nil {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			continue
		}
		b, err := heartbeat.DecodeRecord(m.Key, m.Value)
		if err != nil {
			w.t.Errorf("a beat that nobody can read: %v", err)
			continue
		}
		w.mu.Lock()
		w.beats = append(w.beats, b)
		w.mu.Unlock()
	}
}

// await waits until enough beats fit.
func (w *world) await(what string, enough int, fits func(heartbeat.Beat) bool) {
	w.t.Helper()
	limit := time.After(10 * time.Second)
	for w.count(fits) < enough {
		select {
		case <-limit:
			w.t.Fatalf("%s: not seen %d times", what, enough)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (w *world) count(fits func(heartbeat.Beat) bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.beats {
		if fits(b) {
			n++
		}
	}
	return n
}

// last is the last beat of an instance.
func (w *world) last(id string) (last heartbeat.Beat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.beats {
		if b.ID == id {
			last = b
		}
	}
	return last
}

func (w *world) post(path string) string {
	w.t.Helper()
	res, err := http.Post(w.control.URL+path, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

func leaving(id string) func(heartbeat.Beat) bool {
	return func(b heartbeat.Beat) bool { return b.ID == id && b.Status == heartbeat.StatusLeaving }
}

func TestInstancesComeGoAndComeBack(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		id := fmt.Sprintf("whoami-%d", n+1)
		w.await(id+" beats", 1, func(b heartbeat.Beat) bool { return b.ID == id && b.URL == "/whoami/" && b.Zone == zones[n%2] })
	}

	if got := w.post("/whoami-1/stop"); !strings.Contains(got, "200") || !strings.Contains(got, "stopped") {
		t.Errorf("stop: %s", got)
	}
	w.await("goodbye", 1, leaving("whoami-1"))
	if _, err := http.Get("http://" + w.fleet.find("whoami-1").addr); err == nil {
		t.Error("a stopped instance still serves")
	}
	first, was := w.fleet.find("whoami-1").addr, w.last("whoami-1").Incarnation
	if got := w.post("/whoami-1/start"); !strings.Contains(got, "running") {
		t.Errorf("start: %s", got)
	}
	w.await("a beat of a later incarnation", 1, func(b heartbeat.Beat) bool {
		return b.ID == "whoami-1" && b.Incarnation > was
	})
	if got := w.fleet.find("whoami-1").addr; got != first {
		t.Errorf("came back at %s, was at %s", got, first)
	}

	if got := w.post("/whoami-2/kill"); !strings.Contains(got, "stopped") {
		t.Errorf("kill: %s", got)
	}
	if w.count(leaving("whoami-2")) != 0 {
		t.Error("a killed instance said goodbye")
	}
	w.post("/whoami-3/weight/5")
	w.await("the weight", 1, func(b heartbeat.Beat) bool { return b.ID == "whoami-3" && b.Weight == 5 })
	for path, code := range map[string]string{"/nobody/stop": "404", "/whoami-3/dance": "400", "/whoami-3/weight/-1": "400", "/whoami-3/weight/x": "400",
		"/whoami-3/weight/0": "400", "/whoami-1/weight/0": "400", "/whoami-1/weight/70000": "400", "/whoami-3/stop/now": "400", "/zone/c/kill": "404", "/zone/a/dance": "400"} {
		if got := w.post(path); !strings.HasPrefix(got, code) {
			t.Errorf("%s: %s", path, got)
		}
	}

	if res, err := http.Get(w.control.URL + "/whoami-1/start"); err != nil {
		t.Error(err)
	} else {
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 405 || !strings.Contains(string(body), "curl -s -X POST "+w.control.URL+"/whoami-1/start") {
			t.Errorf("GET: %d %s", res.StatusCode, body)
		}
	}

	w.stop()
	w.await("goodbye of the running at the end", 1, leaving("whoami-3"))
	if w.count(leaving("whoami-2")) != 0 {
		t.Error("a killed instance said goodbye at the end")
	}
}

func TestHandler(t *testing.T) {
	h := Service{Name: "flaky", FailRate: 1}.Handler("flaky-1")
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/flaky/x"); code != 500 || !strings.Contains(body, "flaky-1") {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("healthz %d: a service that fails now and then lives", code)
	}
}

func TestAZoneIsKilledAndStarted(t *testing.T) {
	w := newWorld(t)
	for _, i := range w.fleet.instances {
		w.await(i.ID+" beats", 1, func(b heartbeat.Beat) bool { return b.ID == i.ID })
	}
	states := func() (text string) {
		for _, i := range w.fleet.instances {
			fields := strings.Fields(i.Describe())
			text += i.Zone + " " + fields[len(fields)-1] + ", "
		}
		return text
	}
	if got := w.post("/zone/a/kill"); strings.Count(got, "stopped") != 2 || states() != "a stopped, b running, a stopped, " {
		t.Errorf("kill: %s %s", got, states())
	}
	if got := w.post("/zone/a/start"); strings.Count(got, "running") != 2 || states() != "a running, b running, a running, " {
		t.Errorf("start: %s %s", got, states())
	}
}
