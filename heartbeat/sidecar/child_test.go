package sidecar

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/upstrand/upstrand/heartbeat"
)

// rig is a broker, a sidecar with a child, and what the two say.
type rig struct {
	t       *testing.T
	brokers []string
	records chan *kgo.Record
	lines   chan string // of the child's output
	signals chan os.Signal
	cancel  context.CancelFunc
	result  chan error

	grandchild int // pid of the child's child, if it told one
}

func newRig(t *testing.T) *rig {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, heartbeat.DefaultTopic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	r := &rig{t: t, brokers: broker.ListenAddrs(), records: make(chan *kgo.Record, 1000), lines: make(chan string, 100),
		signals: make(chan os.Signal, 10), result: make(chan error, 1)}
	client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers...), kgo.ConsumeTopics(heartbeat.DefaultTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(rec *kgo.Record) { r.records <- rec })
		}
	})
	t.Cleanup(func() { cancel(); done.Wait(); client.Close() })
	return r
}

func (r *rig) config(role string) Config {
	return Config{
		Sender: heartbeat.Config{Brokers: r.brokers, Beat: heartbeat.Beat{Service: "orders", ID: "a7", IP: "127.0.0.1", Port: 8080,
			Interval: heartbeat.Duration(100 * time.Millisecond)}},
		Check: func(context.Context) error { return nil }, Rise: 1, CheckInterval: 50 * time.Millisecond,
		LeaveWait: 400 * time.Millisecond, StopTimeout: 5 * time.Second,
		Command: []string{os.Args[0]}, Env: append(os.Environ(), roleEnv+"="+role),
		Signals: r.signals,
	}
}

// start runs the sidecar and returns the child's pid.
func (r *rig) start(cfg Config) int {
	r.t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cfg.Stdout = in
	s, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.scan(out)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		defer in.Close()
		r.result <- s.Run(ctx)
	}()
	r.t.Cleanup(cancel)
	pid, err := strconv.Atoi(r.line("ready"))
	if err != nil {
		r.t.Fatal(err)
	}
	return pid
}

func (r *rig) scan(out io.ReadCloser) {
	var done sync.WaitGroup
	done.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			r.lines <- lines.Text()
		}
		out.Close()
	})
	r.t.Cleanup(done.Wait)
}

// line waits for a line of the child that begins with a word and returns the rest.
func (r *rig) line(word string) string {
	r.t.Helper()
	for {
		select {
		case l := <-r.lines:
			if pid, ok := strings.CutPrefix(l, "grandchild "); ok {
				r.grandchild, _ = strconv.Atoi(pid)
			}
			if rest, ok := strings.CutPrefix(l, word+" "); ok {
				return rest
			}
		case <-time.After(15 * time.Second):
			r.t.Fatalf("the child did not say %q", word)
		}
	}
}

// at is when the child says that it got a signal.
func (r *rig) at(sig os.Signal) time.Time {
	r.t.Helper()
	ns, err := strconv.ParseInt(r.line(sig.String()), 10, 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return time.Unix(0, ns)
}

// beat waits for a beat with a status and returns it with the time of its record.
func (r *rig) beat(status heartbeat.Status) (heartbeat.Beat, time.Time) {
	r.t.Helper()
	for {
		select {
		case rec := <-r.records:
			b, err := heartbeat.DecodeRecord(rec.Key, rec.Value)
			if err != nil {
				r.t.Fatal(err)
			}
			if b.Status == status {
				return b, rec.Timestamp
			}
		case <-time.After(15 * time.Second):
			r.t.Fatalf("no beat says %s", status)
		}
	}
}

func (r *rig) end() error {
	r.t.Helper()
	select {
	case err := <-r.result:
		return err
	case <-time.After(15 * time.Second):
		r.t.Fatal("Run does not end")
		return nil
	}
}

// Told to end, the sidecar says goodbye, waits, and only then signals the child.
func TestGoodbyeComesBeforeTheSignal(t *testing.T) {
	for sig, name := range map[os.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", nil: "none"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			pid := r.start(r.config("child"))
			r.beat(heartbeat.StatusUp)
			if sig != nil {
				r.signals <- sig
			}
			r.cancel()
			_, bye := r.beat(heartbeat.StatusLeaving)
			want := sig
			if want == nil {
				want = syscall.SIGTERM
			}
			if wait := r.at(want).Sub(bye); wait < 390*time.Millisecond || wait > 3*time.Second {
				t.Errorf("the child got its signal %v after the goodbye, want 400 ms", wait)
			}
			err := r.end()
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Code != 7 || ExitCode(err) != 7 {
				t.Errorf("Run = %v, code %d", err, ExitCode(err))
			}
			waitGone(t, pid)
		})
	}
}

// A second signal cuts the wait short.
func TestSecondSignalCutsTheWait(t *testing.T) {
	r := newRig(t)
	cfg := r.config("child")
	cfg.LeaveWait = time.Hour
	r.start(cfg)
	r.beat(heartbeat.StatusUp)
	r.signals <- syscall.SIGTERM
	r.cancel()
	r.beat(heartbeat.StatusLeaving)
	r.signals <- syscall.SIGINT
	r.at(syscall.SIGINT)
	if err := r.end(); ExitCode(err) != 7 {
		t.Errorf("Run = %v", err)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	r := newRig(t)
	r.start(r.config("child"))
	r.beat(heartbeat.StatusUp)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGQUIT} {
		r.signals <- sig
		r.at(sig)
	}
	r.cancel()
	r.end()
}

// A child that crashes is gone from the routing at once.
func TestCrash(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		code int
	}{{syscall.SIGUSR2, 3}, {syscall.SIGKILL, 137}} {
		t.Run(c.sig.String(), func(t *testing.T) {
			r := newRig(t)
			pid := r.start(r.config("child"))
			up, _ := r.beat(heartbeat.StatusUp)
			killed := time.Now()
			if err := syscall.Kill(pid, c.sig); err != nil {
				t.Fatal(err)
			}
			bye, at := r.beat(heartbeat.StatusLeaving)
			if bye.Incarnation != up.Incarnation || at.Sub(killed) > 5*time.Second {
				t.Errorf("goodbye %v after the crash: %+v", at.Sub(killed), bye)
			}
			err := r.end()
			if ExitCode(err) != c.code {
				t.Errorf("code %d, want %d: %v", ExitCode(err), c.code, err)
			}
			if r.cancel(); len(r.records) > 0 {
				t.Errorf("%d records after the goodbye", len(r.records))
			}
		})
	}
}

// A child that does not heed its signal is killed with its process group.
func TestStubbornChildIsKilled(t *testing.T) {
	r := newRig(t)
	cfg := r.config("stubborn")
	cfg.StopTimeout = 1500 * time.Millisecond
	pid := r.start(cfg)
	r.beat(heartbeat.StatusUp)
	r.cancel()
	r.beat(heartbeat.StatusLeaving)
	sent := r.at(syscall.SIGTERM)
	if err := r.end(); ExitCode(err) != 128+9 {
		t.Errorf("Run = %v, code %d", err, ExitCode(err))
	}
	if took := time.Since(sent); took < 1400*time.Millisecond || took > 8*time.Second {
		t.Errorf("killed after %v", took)
	}
	waitGone(t, pid)
	waitGone(t, r.grandchild)
}

func TestChildThatCantBeStarted(t *testing.T) {
	file := t.TempDir() + "/not-executable"
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, code := range map[string]int{"/no/such/program": 127, "no-such-program-in-path": 127, file: 126} {
		r := newRig(t)
		cfg := r.config("child")
		cfg.Command = []string{command}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); ExitCode(err) != code || !strings.Contains(err.Error(), command) {
			t.Errorf("%s: code %d, %v", command, ExitCode(err), err)
		}
		if len(r.records) > 0 {
			t.Errorf("%s: something was said", command)
		}
	}
}

// A child that ends well ends the sidecar well. Its output held open by a process it left behind does not matter.
func TestChildThatEndsWell(t *testing.T) {
	r := newRig(t)
	cfg := r.config("")
	cfg.Command = []string{"/bin/sh", "-c", "sleep 2 & exit 0"}
	cfg.Stdout = &strings.Builder{} // no file: os/exec copies
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Errorf("Run = %v", err)
	}
}

// saw is a log that tells when it sees a text.
type saw struct {
	text string
	tell chan<- struct{}
}

func (s saw) Write(line []byte) (int, error) {
	if strings.Contains(string(line), s.text) {
		s.tell <- struct{}{}
	}
	return len(line), nil
}

// Without a check, the instance joins when its port takes connections.
func TestDefaultCheckIsThePort(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cfg := r.config("child")
	cfg.Check, cfg.Command, cfg.Sender.Beat.Port = nil, nil, port
	failed := make(chan struct{}, 100)
	cfg.Logger = slog.New(slog.NewTextHandler(saw{"check fails", failed}, nil))
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { r.result <- s.Run(ctx) }()
	<-failed
	if len(r.records) > 0 || s.Ready() == nil {
		t.Error("an instance that takes no connection has joined")
	}
	if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err != nil {
		t.Skipf("port %d was taken by somebody else: %v", port, err)
	}
	defer l.Close()
	r.beat(heartbeat.StatusUp)
	cancel()
	if err := r.end(); err != nil {
		t.Errorf("Run = %v", err)
	}
	r.beat(heartbeat.StatusLeaving)
}

// The whole as a process: SIGTERM to it ends in order, kill -9 takes the child along.
func TestSidecarProcess(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			r := newRig(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"=sidecar", "BROKERS="+strings.Join(r.brokers, ","))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r.scan(out)
			child, err := strconv.Atoi(r.line("ready"))
			if err != nil {
				t.Fatal(err)
			}
			r.beat(heartbeat.StatusUp)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if sig == syscall.SIGTERM {
				_, bye := r.beat(heartbeat.StatusLeaving)
				if wait := r.at(sig).Sub(bye); wait < 290*time.Millisecond {
					t.Errorf("the child got its signal %v after the goodbye, want 300 ms", wait)
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); sig == syscall.SIGTERM && code != 7 {
				t.Errorf("exit code %d, want the child's 7", code)
			}
			waitGone(t, child)
		})
	}
}
