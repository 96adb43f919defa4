package rig

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/heartbeat"
)

// Spec describes an instance of a test's service.
type Spec struct {
	Service, ID string
	At          string // ip:port that its backend listens on; empty: a free port
	URL         string // empty: /SERVICE
	Zone        string
	Weight      int
	Beat        func(*heartbeat.Beat) // last changes to the template, may be nil
}

// Instance is a service's process as the rest of the system sees it: an HTTP backend and a heartbeat sender behind a network of
// its own.
type Instance struct {
	Spec
	*Backend
	Network *Gate
	Sender  *heartbeat.Sender

	started time.Time
	stop    context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex
	firstAck time.Time
	acks     int
	errs     []error
}

// Join starts an instance in this process: its backend listens before its first beat goes out. All instances of a world share
// connections to Kafka.
func (w *World) Join(spec Spec) (*Instance, error) {
	i, err := StartInstance(w.Kafka.Addr, w.transport, w.Times.Beat, spec)
	if err == nil {
		w.mu.Lock()
		w.instances = append(w.instances, i)
		w.mu.Unlock()
	}
	return i, err
}

// StartInstance starts an instance that beats to a broker over a transport.
func StartInstance(broker string, transport kafka.RoundTripper, interval time.Duration, spec Spec) (*Instance, error) {
	if spec.URL == "" {
		spec.URL = "/" + spec.Service
	}
	backend, err := NewBackend(spec.Service+"/"+spec.ID, spec.At)
	if err != nil {
		return nil, err
	}
	i := &Instance{Spec: spec, Backend: backend, Network: NewGate(transport), done: make(chan struct{})}
	if i.Sender, err = heartbeat.NewSender(i.config(broker, interval)); err != nil {
		backend.Kill()
		return nil, fmt.Errorf("rig: sender of %s: %w", backend.Name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	i.stop, i.started = cancel, time.Now()
	go func() {
		defer close(i.done)
		if err := i.Sender.Run(ctx); err != nil {
			i.note(err)
		}
	}()
	return i, nil
}

func (i *Instance) config(broker string, interval time.Duration) heartbeat.Config {
	host, port, _ := net.SplitHostPort(i.Addr)
	n, _ := strconv.Atoi(port)
	beat := heartbeat.Beat{Service: i.Service, ID: i.ID, IP: host, Port: n, URL: i.URL, Zone: i.Zone, Weight: i.Weight,
		Interval: heartbeat.Duration(interval)}
	if i.Spec.Beat != nil {
		i.Spec.Beat(&beat)
	}
	return heartbeat.Config{
		Brokers: []string{broker}, Topic: TopicHeartbeat, Transport: i.Network, Beat: beat,
		OnError: i.note, OnSent: i.sent,
	}
}

func (i *Instance) note(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.errs) < 20 {
		i.errs = append(i.errs, fmt.Errorf("%s: %w", time.Now().Format("15:04:05.000"), err))
	}
}

func (i *Instance) sent(heartbeat.Beat) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.acks++
	if i.firstAck.IsZero() {
		i.firstAck = time.Now()
	}
}

// Started is when its sender began, just before the first beat.
func (i *Instance) Started() time.Time { return i.started }

// Acknowledged is how many of its beats are in Kafka.
func (i *Instance) Acknowledged() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.acks
}

// Errors are the sender's with their times, the first 20.
func (i *Instance) Errors() []error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]error(nil), i.errs...)
}

// Goodbye ends the sender, whose last word says leaving, and returns when that is on Kafka. The backend goes on serving.
func (i *Instance) Goodbye() time.Time {
	i.stop()
	<-i.done
	return time.Now()
}

// Leave says goodbye, goes on serving for a while, as services do, and ends.
func (i *Instance) Leave(after time.Duration) time.Time {
	at := i.Goodbye()
	time.AfterFunc(after, i.Shutdown)
	return at
}

// Silence ends the sender without a goodbye; the backend goes on serving.
func (i *Instance) Silence() {
	i.Network.sever()
	i.Network.Mend()
	i.stop()
	<-i.done
}

// Crash ends the instance as kill -9 would: no goodbye, connections reset.
func (i *Instance) Crash() {
	i.Network.sever()
	i.Network.Mend()
	i.Kill()
	i.stop()
	<-i.done
}
