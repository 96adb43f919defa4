package sidecar

import (
	"context"
	"fmt"
	"time"

	"github.com/upstrand/upstrand/heartbeat"
)

// beating is one incarnation's Sender at work.
type beating struct {
	cancel context.CancelFunc
	result chan error
}

// apply follows a change of the service's health.
func (s *Sidecar) apply(c change) {
	if !c.well {
		s.log.Warn("service is ill, leaving", "error", c.cause)
		if err := s.leave(); err != nil {
			s.log.Warn("goodbye not said", "error", err)
		}
		return
	}
	if err := s.join(c.ip); err != nil {
		s.log.Error("can't beat", "error", err)
	}
}

// join begins a new incarnation. Incarnations go up even when the clock steps back.
func (s *Sidecar) join(ip string) error {
	cfg := s.cfg.Sender
	cfg.Beat.IP = ip
	if s.incarnation != 0 || cfg.Beat.Incarnation == 0 {
		cfg.Beat.Incarnation = max(time.Now().UnixMilli(), s.incarnation+1)
	}
	s.incarnation = cfg.Beat.Incarnation
	s.logBeats(&cfg)
	sender, err := s.newSender(cfg)
	if err != nil {
		return err
	}
	s.log.Info("service is well, joining", "incarnation", s.incarnation, "ip", ip, "port", cfg.Beat.Port)
	ctx, cancel := context.WithCancel(context.Background())
	s.beating = &beating{cancel: cancel, result: make(chan error, 1)}
	result := s.beating.result
	go func() { result <- sender.Run(ctx) }()
	s.setCurrent(sender)
	s.note(func(st *Stats) { s.counted, st.Incarnation = sender, cfg.Beat.Incarnation; st.Incarnations++ })
	return nil
}

// leave says goodbye, if anything was said before, and waits until it is said (heartbeat.Config.GoodbyeTimeout).
func (s *Sidecar) leave() error {
	if s.beating == nil {
		return nil
	}
	s.setCurrent(nil)
	s.beating.cancel()
	err := <-s.beating.result
	s.note(func(st *Stats) { *st, s.counted = with(*st, s.counted), nil; st.Incarnation = 0 })
	s.beating = nil
	if err == nil {
		s.log.Info("said goodbye", "incarnation", s.incarnation)
	}
	return err
}

func (s *Sidecar) setCurrent(b beater) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = b
}

// logBeats writes a line when beats begin or cease to arrive, rather than one for each. The Sender calls the two one at a
// time.
func (s *Sidecar) logBeats(cfg *heartbeat.Config) {
	const unknown, arriving, failing = 0, 1, 2
	state := unknown
	onSent, onError := cfg.OnSent, cfg.OnError
	cfg.OnSent = func(b heartbeat.Beat) {
		if state != arriving {
			s.log.Info("beats arrive", "seq", b.Seq)
		}
		state = arriving
		if onSent != nil {
			onSent(b)
		}
	}
	cfg.OnError = func(err error) {
		if state != failing {
			s.log.Warn("beats fail", "error", err)
		}
		state = failing
		if onError != nil {
			onError(err)
		}
	}
}

// change is a new state of the service's health.
type change struct {
	well  bool
	ip    string // the instance's address
	cause error  // the last failure, when not well
}

// lookupPause is the time between attempts to find our own address.
const lookupPause = time.Second

// watch checks the service until ctx ends and tells each change of its health.
func (s *Sidecar) watch(ctx context.Context, changes chan<- change) {
	ip, ok := s.address(ctx)
	if !ok {
		return
	}
	check := s.cfg.Check
	if check == nil {
		check = TCP(hostPort(ip, s.cfg.Sender.Beat.Port))
	}
	h := health{rise: s.cfg.Rise, fall: s.cfg.Fall}
	failing := false // one line for a run of failures
	ticker := time.NewTicker(s.cfg.CheckInterval)
	defer ticker.Stop()
	for {
		err := s.checkOnce(ctx, check)
		if ctx.Err() != nil {
			return // a check that was cut off says nothing
		}
		if err != nil && !failing {
			s.log.Info("check fails", "error", err)
		}
		failing = err != nil
		changed := h.observe(err == nil)
		s.note(func(st *Stats) { st.Checks++; st.CheckError, st.Well = err, h.well })
		if changed {
			select {
			case changes <- change{well: h.well, ip: ip, cause: err}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Sidecar) checkOnce(ctx context.Context, check Check) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CheckTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("check: panic: %v", p)
		}
	}()
	return check(ctx)
}

// address is the instance's ip: as given, or found, which is tried for as long as it takes.
func (s *Sidecar) address(ctx context.Context) (ip string, ok bool) {
	if ip := s.cfg.Sender.Beat.IP; ip != "" {
		return ip, true
	}
	for logged := false; ; {
		ip, err := s.lookup(ctx, s.cfg.Sender.Brokers[0])
		if err == nil {
			s.log.Info("own address found", "ip", ip, "towards", s.cfg.Sender.Brokers[0])
			return ip, true
		}
		if !logged {
			logged = true
			s.log.Warn("own address not known yet, no ip was given", "error", err)
		}
		select {
		case <-time.After(lookupPause):
		case <-ctx.Done():
			return "", false
		}
	}
}

// health counts checks. It begins ill.
type health struct {
	rise, fall int
	well       bool
	against    int // checks in a row that speak against the state
}

// observe takes the outcome of a check and reports whether the state changed.
func (h *health) observe(ok bool) bool {
	if ok == h.well {
		h.against = 0
		return false
	}
	h.against++
	limit := h.rise
	if h.well {
		limit = h.fall
	}
	if h.against < limit {
		return false
	}
	h.well, h.against = ok, 0
	return true
}
