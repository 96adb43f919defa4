package roles

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func raise(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
}

// While a reload takes its time, whatever comes is carried out after it, once each.
func TestNoSignalTakesThePlaceOfAnother(t *testing.T) {
	got := listen(false)
	got.file()
	defer got.stop()
	raise(t, syscall.SIGHUP)
	eventually(t, "SIGHUP does not come", func() bool { return len(got.reload) == 1 })
	raise(t, syscall.SIGHUP)
	raise(t, syscall.SIGHUP)
	raise(t, syscall.SIGUSR1)
	eventually(t, "SIGUSR1 is lost behind SIGHUPs", func() bool { return len(got.reopen) == 1 })
}

// A SIGHUP at the end does not cut the requests that are still open: without a handler it ends the process.
func TestAReloadWhileRequestsEndIsNoEnd(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = w.Write([]byte("whole"))
	}))
	defer slow.Close()
	at := freePort(t)
	x := &Proxy{Conf: filepath.Join(t.TempDir(), "a.conf"), DrainTimeout: time.Minute}
	if err := os.WriteFile(x.Conf, []byte(upstreamFile(at, "server "+slow.Listener.Addr().String()+";")), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &Process{Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()}
	px, err := proxy.New(proxy.Config{Logger: p.Log})
	if err != nil {
		t.Fatal(err)
	}
	in, err := x.fileEntrance(p, px, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, answer := make(chan error, 1), make(chan string, 1)
	go func() { done <- x.serve(ctx, p, px, in) }()
	go func() { answer <- ask(at) }()
	<-arrived
	cancel()
	eventually(t, "the door stays open", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	raise(t, syscall.SIGHUP)
	time.Sleep(20 * time.Millisecond) // an end would come at once
	close(release)
	if got := <-answer; got != "whole" {
		t.Errorf("the request got %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
