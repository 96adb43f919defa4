package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestAnswers(t *testing.T) {
	ready, metrics := NewReadiness(), prometheus.NewRegistry()
	things := prometheus.NewCounter(prometheus.CounterOpts{Name: "upstrand_test_things_total", Help: "Things."})
	metrics.MustRegister(things)
	things.Add(3)
	ln, err := Listen("127.0.0.1:0", "admin-listen", "admin", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- NewServer(ln, Handler(ready, metrics)).Run(ctx) }()
	base := "http://" + ln.Addr().String()

	ready.Hold("listener", "waits for the database")
	ready.Set("proxy", func() error { return errors.New("has no topology") })
	if code, body := get(t, base+"/readyz"); code != 503 || body != "listener: waits for the database\nproxy: has no topology\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, body := get(t, base+"/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("%d %q: a process that is not ready still lives", code, body)
	}
	ready.Set("listener", func() error { return nil })
	ready.Set("proxy", func() error { return nil })
	if code, body := get(t, base+"/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("%d %q", code, body)
	}
	ready.Note("proxy", func() string { return "" })
	ready.Note("listener", func() string { return "owns 3 partitions" })
	if code, body := get(t, base+"/readyz"); code != 200 || body != "ready\nlistener: owns 3 partitions\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, body := get(t, base+"/metrics"); code != 200 || !strings.Contains(body, "upstrand_test_things_total 3") {
		t.Errorf("%d %q", code, body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("still listening after Run returned")
	}
}

func TestATakenAddressNamesItAndTheFlag(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, err = Listen(ln.Addr().String(), "admin-listen", "admin", zerolog.Nop())
	for _, want := range []string{ln.Addr().String(), "--admin-listen", "address already in use"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}
