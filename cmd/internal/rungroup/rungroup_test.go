package rungroup

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notes collects what happened, in order.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.list...)
}

// part works until told to end and then takes a while.
func (n *notes) part(name string, takes time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(takes)
		n.add(name)
		return err
	}
}

func TestPartsEndLastAddedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		g := New(zerolog.Nop(), 10*time.Second)
		g.OnStop("database", func(context.Context) error { n.add("database"); return errors.New("would not close") })
		g.Add("admin", n.part("admin", time.Second, nil))
		g.Add("listener", n.part("listener", 3*time.Second, errors.New("lost a batch")))
		g.OnStop("readiness", func(context.Context) error { n.add("readiness"); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- g.Run(ctx) }()
		synctest.Wait()
		if list := n.all(); list != nil {
			t.Fatalf("ended without being told: %v", list)
		}
		began := time.Now()
		cancel()
		err := <-result
		if d := cmp.Diff([]string{"readiness", "listener", "admin", "database"}, n.all()); d != "" {
			t.Error(d)
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("took %v, want 4s: each part waits for the one before", took)
		}
		if err == nil || err.Error() != "listener: lost a batch\ndatabase: would not close" {
			t.Errorf("error %v", err)
		}
	})
}

func TestAPartThatEndsTakesTheRestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		g := New(zerolog.Nop(), 10*time.Second)
		g.Add("admin", n.part("admin", 0, nil))
		g.Add("proxy", func(context.Context) error { time.Sleep(time.Minute); return errors.New("socket gone") })
		g.Add("agent", n.part("agent", 0, nil))
		err := g.Run(t.Context())
		if err == nil || err.Error() != "proxy: socket gone" {
			t.Errorf("error %v", err)
		}
		if d := cmp.Diff([]string{"agent", "admin"}, n.all()); d != "" {
			t.Error(d)
		}
	})
}

func TestAPartThatEndsWithoutErrorIsAnErrorToo(t *testing.T) {
	g := New(zerolog.Nop(), time.Second)
	g.Add("agent", func(context.Context) error { return nil })
	if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "agent ended by itself") {
		t.Errorf("error %v", err)
	}
}

func TestOneDeadlineForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notes
		g := New(zerolog.Nop(), 5*time.Second)
		g.OnStop("database", func(context.Context) error { n.add("database"); return nil })
		g.Add("slow", n.part("slow", 4*time.Second, nil))
		g.Add("hung", n.part("hung", time.Minute, nil))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := g.Run(ctx)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %v, want the deadline of 5s", took)
		}
		for _, part := range []string{"hung: still running", "slow: still running"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v, want %q in it", err, part)
			}
		}
		if d := cmp.Diff([]string{"database"}, n.all()); d != "" {
			t.Error(d)
		}
		time.Sleep(time.Hour) // the parts end in the end, so the bubble can
	})
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, quit := make(chan os.Signal, 2), make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		exits := make(chan int, 1)
		go watch(signals, quit, cancel, func(code int) { exits <- code })
		signals <- syscall.SIGINT
		<-ctx.Done()
		if got := context.Cause(ctx).Error(); got != "signal: interrupt" {
			t.Errorf("cause %q", got)
		}
		synctest.Wait()
		select {
		case <-exits:
			t.Fatal("the first signal ended the process")
		default:
		}
		signals <- syscall.SIGTERM
		if code := <-exits; code != ExitAtOnce {
			t.Errorf("exit code %d", code)
		}
		close(quit)
	})
}

func TestSignalsLeaveNothingBehind(t *testing.T) {
	ctx, stop := Signals(t.Context(), func(int) { t.Error("exit") })
	stop()
	if ctx.Err() == nil {
		t.Error("context still open")
	}
}

// What was built is given back without a word: nobody ran it, so there is no end to tell of.
func TestAbandonGivesBackInSilence(t *testing.T) {
	var n notes
	var log strings.Builder
	g := New(zerolog.New(&log).Level(zerolog.InfoLevel), time.Second)
	g.OnStop("database", func(context.Context) error { n.add("database"); return nil })
	g.Add("admin", n.part("admin", 0, nil))
	g.Abandon()
	if d := cmp.Diff([]string{"admin", "database"}, n.all()); d != "" {
		t.Error(d)
	}
	if log.String() != "" {
		t.Errorf("said %s", log.String())
	}
}
