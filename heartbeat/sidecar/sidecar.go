package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/heartbeat"
)

// Config is what a Sidecar needs. Sender.Brokers and the Beat's service, id and port must be given; times that are 0
// have the defaults named here.
type Config struct {
	// Sender is how to beat and what about. Beat.IP may be empty: then it is the outgoing address towards the first broker
	// (heartbeat.OutgoingIP), found when Run begins. Beat.Incarnation counts for the first incarnation only. OnSent and
	// OnError are called beside the sidecar's own log lines.
	Sender heartbeat.Config

	// Check says whether the service is well; nil: a TCP connection to the beat's ip and port can be made.
	Check         Check
	CheckInterval time.Duration // from one check's start to the next one's, default 2 s
	CheckTimeout  time.Duration // default 1 s
	Rise          int           // successes in a row that make it well, default 2
	Fall          int           // failures in a row that make it ill, default 3

	// Command is the service's program with its arguments; none: the service runs by itself. It gets a process group of
	// its own, so a Ctrl-C on the terminal reaches it by way of the sidecar only, after the goodbye. Env and Dir as in
	// os/exec. Stdin: default none; Stdout and Stderr: default the sidecar's.
	Command        []string
	Env            []string
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	LeaveWait   time.Duration // from the goodbye to the child's signal, default 1 s, negative: none
	StopTimeout time.Duration // from the child's signal to SIGKILL, default 10 s

	// Signals, if not nil, is used in place of the process's signals: what is passed on to the child comes from it.
	Signals <-chan os.Signal

	Logger *slog.Logger // default: none
}

// Sidecar is one service's sidecar.
type Sidecar struct {
	cfg       Config
	log       *slog.Logger
	newSender func(heartbeat.Config) (beater, error)
	lookup    func(ctx context.Context, towards string) (string, error)

	mu      sync.Mutex
	current beater // nil: nothing is said now
	counted beater // whose beats stats does not have yet; nil: none
	stats   Stats

	// The fields below belong to Run.
	incarnation int64
	beating     *beating
}

// Stats is what a Sidecar did so far and how things stand.
type Stats struct {
	Sent, Failed int64     // beats that Kafka acknowledged, and failed attempts, over all incarnations
	LastSent     time.Time // of the last acknowledged beat; zero: none yet
	Incarnation  int64     // of the beats that are sent now; 0 while nothing is said
	Incarnations int64     // how many there were
	Well         bool      // what the checks come to, by Rise and Fall
	CheckError   error     // of the last check; nil when it succeeded, or there was none yet
	Checks       int64     // checks that were made
	ChildRunning bool      // the service's own process; false when there is no command
}

// Stats tells how things stand. It may be called at any time.
func (s *Sidecar) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return with(s.stats, s.counted)
}

// with adds a Sender's beats to those of the senders before it.
func with(st Stats, b beater) Stats {
	if b == nil {
		return st
	}
	own := b.Stats()
	st.Sent, st.Failed = st.Sent+own.Sent, st.Failed+own.Failed
	if !own.LastSent.IsZero() {
		st.LastSent = own.LastSent
	}
	return st
}

// note changes what Stats tells.
func (s *Sidecar) note(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// beater is the part of heartbeat.Sender that is used here.
type beater interface {
	Run(context.Context) error
	Ready() error
	Stats() heartbeat.Stats
}

// New checks the configuration and starts nothing.
func New(cfg Config) (*Sidecar, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	return &Sidecar{
		cfg:       cfg,
		log:       cfg.Logger.With("service", cfg.Sender.Beat.Service, "id", cfg.Sender.Beat.ID),
		newSender: func(c heartbeat.Config) (beater, error) { return heartbeat.NewSender(c) },
		lookup:    heartbeat.OutgoingIP,
	}, nil
}

func (c *Config) complete() error {
	var errs []error
	probe := c.Sender
	if probe.Beat.IP == "" {
		probe.Beat.IP = "127.0.0.1"
	}
	if _, err := heartbeat.NewSender(probe); err != nil {
		errs = append(errs, err)
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		errs = append(errs, errors.New("command: its name is empty"))
	}
	for _, n := range []struct {
		name      string
		value     *int
		otherwise int
	}{{"rise", &c.Rise, 2}, {"fall", &c.Fall, 3}} {
		if *n.value == 0 {
			*n.value = n.otherwise
		}
		if *n.value < 1 || *n.value > 100 {
			errs = append(errs, fmt.Errorf("%s: %d is not 1 to 100", n.name, *n.value))
		}
	}
	for _, d := range []struct {
		name      string
		value     *time.Duration
		otherwise time.Duration
	}{{"check interval", &c.CheckInterval, 2 * time.Second}, {"check timeout", &c.CheckTimeout, time.Second},
		{"stop timeout", &c.StopTimeout, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
		if *d.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %v is negative", d.name, *d.value))
		}
	}
	if c.LeaveWait == 0 {
		c.LeaveWait = time.Second
	}
	if c.Stdout == nil {
		c.Stdout = os.Stdout
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

// Ready is nil while the service is well and Kafka takes its beats; otherwise it says why not.
func (s *Sidecar) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		if s.stats.CheckError != nil {
			return s.stats.CheckError
		}
		return errors.New("the service's check has not succeeded often enough yet")
	}
	return s.current.Ready()
}

// Run checks, beats and, if there is a command, runs it. It ends when ctx ends or the child does, whichever comes first,
// having said goodbye and waited for the child. With a command its error tells how the child ended (ExitCode makes an exit
// code of it); without one, whether the goodbye arrived. It is for one goroutine.
func (s *Sidecar) Run(ctx context.Context) error {
	signals, stop := s.signals()
	defer stop()
	var child *child
	var ended <-chan struct{} // never ready when there is no child
	if len(s.cfg.Command) > 0 {
		var err error
		if child, err = startChild(s.cfg); err != nil {
			return err
		}
		ended = child.done
		s.note(func(st *Stats) { st.ChildRunning = true })
		defer s.note(func(st *Stats) { st.ChildRunning = false })
		s.log.Info("child started", "pid", child.pid(), "command", s.cfg.Command[0])
	}
	goodbye := s.followCheck(ctx, child, ended, signals)
	if child == nil {
		return goodbye
	}
	if goodbye != nil {
		s.log.Warn("goodbye not said", "error", goodbye)
	}
	err := child.err()
	s.log.Info("child ended", "code", ExitCode(err))
	return err
}

// followCheck is the sidecar's life: it ends when nothing is left to wait for, and returns the last goodbye's error.
func (s *Sidecar) followCheck(ctx context.Context, child *child, ended <-chan struct{}, signals <-chan os.Signal) error {
	watching, stopWatch := context.WithCancel(ctx)
	changes := make(chan change)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watching, changes) })
	defer watcher.Wait()
	defer stopWatch()
	var asked []os.Signal // to end, seen before ctx was
	for {
		select {
		case c := <-changes:
			s.apply(c)
		case sig := <-signals:
			if slices.Contains(ending, sig) {
				asked = append(asked, sig) // it ends us by way of ctx
			} else if child != nil {
				child.signal(sig)
			}
		case <-ended:
			return s.leave()
		case <-ctx.Done():
			beating := s.beating != nil
			err := s.leave()
			if child != nil {
				s.stopChild(child, signals, asked, beating && err == nil)
			}
			return err
		}
	}
}

// ending are the signals that make our own process end, by way of ctx; passing are those that mean nothing to us and are
// passed on to the child.
var (
	ending  = []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	passing = []os.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
)

// stopChild gives the proxies time to move on, if they were told a goodbye, signals the child and waits for its end. The
// child gets the signal that we were asked to end by, SIGTERM when there was none.
func (s *Sidecar) stopChild(c *child, signals <-chan os.Signal, asked []os.Signal, told bool) {
	if told {
		asked = s.leaveWait(c, signals, asked)
	}
	var sig os.Signal = syscall.SIGTERM
	if n := len(asked); n > 0 {
		sig = asked[n-1]
	}
	c.signal(sig)
	timer := time.NewTimer(s.cfg.StopTimeout)
	defer timer.Stop()
	for {
		select {
		case <-c.done:
			return
		case next := <-signals:
			c.signal(next)
		case <-timer.C:
			s.log.Warn("child does not end, killing its process group", "after", s.cfg.StopTimeout)
			c.kill()
		}
	}
}

// leaveWait waits until the proxies have moved on, the child has ended, or we are asked to end a second time. It returns
// what we were asked.
func (s *Sidecar) leaveWait(c *child, signals <-chan os.Signal, asked []os.Signal) []os.Signal {
	timer := time.NewTimer(s.cfg.LeaveWait)
	defer timer.Stop()
	for len(asked) < 2 {
		select {
		case <-c.done:
			return asked
		case sig := <-signals:
			if slices.Contains(ending, sig) {
				asked = append(asked, sig)
			} else {
				c.signal(sig)
			}
		case <-timer.C:
			return asked
		}
	}
	return asked
}
