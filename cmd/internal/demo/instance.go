package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/heartbeat"
)

// Beats is how instances reach Kafka.
type Beats struct {
	Brokers   []string
	Transport kafka.RoundTripper
	Topic     string
	Interval  time.Duration
}

// Instance is one place where a service runs. It can be started and stopped again and again; each start is a new
// incarnation. Safe for concurrent use.
type Instance struct {
	Service  Service
	ID, Zone string
	beats    Beats
	log      zerolog.Logger

	mu     sync.Mutex
	addr   string // of the last start; kept, so that a restart comes back where it was if it can
	weight int
	now    *running // nil while stopped
}

// running is one incarnation.
type running struct {
	server *http.Server
	sender *heartbeat.Sender
	line   *line
	end    context.CancelFunc
	beaten chan struct{} // closed when the sender has said its last word
	served chan struct{} // closed when the server has ended
}

// line is the way of one instance to Kafka, which can be cut: so dies a process without a goodbye.
type line struct {
	kafka.RoundTripper
	cut atomic.Bool
}

var errCut = errors.New("demo: the instance was killed")

func (l *line) RoundTrip(ctx context.Context, addr net.Addr, r kafka.Request) (kafka.Response, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	return l.RoundTripper.RoundTrip(ctx, addr, r)
}

// goodbyeTimeout bounds the last beat, since the whole process has 5 s to end.
const goodbyeTimeout = 1500 * time.Millisecond

// Start serves and beats; nothing happens when it does so already.
func (i *Instance) Start() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now != nil {
		return nil
	}
	ln, err := listen(i.addr)
	if err != nil {
		return fmt.Errorf("start %s: %w", i.ID, err)
	}
	i.addr = ln.Addr().String()
	r := &running{line: &line{RoundTripper: i.beats.Transport}, beaten: make(chan struct{}), served: make(chan struct{})}
	if r.sender, err = i.newSender(r.line, ln.Addr().(*net.TCPAddr)); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", i.ID, err), ln.Close())
	}
	r.server = &http.Server{Handler: i.Service.Handler(i.ID + " (zone " + i.Zone + ", " + i.addr + ")"), ReadHeaderTimeout: 5 * time.Second}
	ctx, cancel := context.WithCancel(context.Background())
	r.end = cancel
	go func() { defer close(r.served); _ = r.server.Serve(ln) }()
	go func() {
		defer close(r.beaten)
		if err := r.sender.Run(ctx); err != nil && !r.line.cut.Load() {
			i.log.Warn().Err(err).Str("instance", i.ID).Msg("goodbye")
		}
	}()
	i.now = r
	return nil
}

// listen takes the address of before when it is still free, else any other.
func listen(before string) (net.Listener, error) {
	if before != "" {
		if ln, err := net.Listen("tcp", before); err == nil {
			return ln, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

func (i *Instance) newSender(l *line, addr *net.TCPAddr) (*heartbeat.Sender, error) {
	return heartbeat.NewSender(heartbeat.Config{
		Brokers: i.beats.Brokers, Topic: i.beats.Topic, Transport: l, GoodbyeTimeout: goodbyeTimeout,
		Beat: heartbeat.Beat{
			Service: i.Service.Name, ID: i.ID, Scheme: "http", IP: addr.IP.String(), Port: addr.Port, URL: i.Service.URL(),
			Zone: i.Zone, Weight: i.weight, Version: "demo", Interval: heartbeat.Duration(i.beats.Interval),
		},
		OnError: func(err error) {
			if !l.cut.Load() {
				i.log.Debug().Err(err).Str("instance", i.ID).Msg("beat")
			}
		},
	})
}

// Stop says goodbye, lets linger pass, so that those who still hold the old topology are served, and closes. Nothing
// happens when the instance is down.
func (i *Instance) Stop(ctx context.Context, linger time.Duration) {
	r := i.take()
	if r == nil {
		return
	}
	r.end()
	<-r.beaten
	select {
	case <-time.After(linger):
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if r.server.Shutdown(bounded) != nil {
		_ = r.server.Close()
	}
	<-r.served
}

// Kill ends the instance as kill -9 ends a process: connections break, nobody says goodbye.
func (i *Instance) Kill() {
	r := i.take()
	if r == nil {
		return
	}
	r.line.cut.Store(true)
	_ = r.server.Close()
	r.end()
	<-r.served
	<-r.beaten
}

// take makes the instance count as stopped and returns what ran.
func (i *Instance) take() *running {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.now
	i.now = nil
	return r
}

// SetWeight changes the weight at once.
func (i *Instance) SetWeight(weight int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now != nil {
		if err := i.now.sender.Update(func(b *heartbeat.Beat) { b.Weight = weight }); err != nil {
			return err
		}
	}
	i.weight = weight
	return nil
}

// Describe is one line on what the instance does.
func (i *Instance) Describe() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	state := "stopped"
	if i.now != nil {
		state = "running"
	}
	return fmt.Sprintf("%-10s zone %s  weight %-3d %-21s %s", i.ID, i.Zone, i.weight, i.addr, state)
}
