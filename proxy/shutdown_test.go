package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestShutdownEndsWhatRuns(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(rw http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(rw, "done")
	})
	w.set("orders", instance("b", b.addr()))
	w.apply()
	got := make(chan answer, 1)
	go func() {
		a, _ := w.try("GET", "/orders", nil)
		got <- a
	}()
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- w.p.Shutdown(context.Background()) }()
	eventually(t, "not ready", func() bool { return w.p.Ready() != nil })
	eventually(t, "accepts nothing", func() bool {
		c, err := net.Dial("tcp", w.addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	select {
	case err := <-ended:
		t.Fatalf("shutdown did not wait: %v", err)
	default:
	}
	close(release)
	if a := <-got; a.body != "done" {
		t.Errorf("request in flight: %+v", a)
	}
	if err := <-ended; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestShutdownCutsAtItsDeadline(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	w := newWorld(t, nil)
	b := newBackend(t, "b", func(http.ResponseWriter, *http.Request) { close(entered); <-release })
	t.Cleanup(func() { b.srv.CloseClientConnections() })
	w.set("orders", instance("b", b.addr()))
	w.apply()
	failed := make(chan error, 1)
	go func() {
		_, err := w.try("GET", "/orders", nil)
		failed <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := w.p.Shutdown(ctx); err == nil {
		t.Error("a cut request must be told")
	}
	if err := <-failed; err == nil {
		t.Error("the request was not cut")
	}
}
