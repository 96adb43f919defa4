package simulate

import (
	"fmt"
	"strings"
	"time"
)

// setStep changes what servers do from now on.
type setStep struct {
	servers []string
	does    behaviour
}

func (s *setStep) do(r *run) error {
	for _, text := range s.servers {
		addrs, err := r.addresses(text)
		if err != nil {
			return err
		}
		for _, a := range addrs {
			r.world.set(a, s.does)
		}
	}
	return nil
}

// waitStep lets time go by.
type waitStep time.Duration

func (s waitStep) do(r *run) error {
	r.world.pass(time.Duration(s))
	return nil
}

// alignStep goes to 60 ms after the next start of a second.
type alignStep struct{}

func (alignStep) do(r *run) error {
	r.world.until(r.world.aligned())
	return nil
}

// requestStep sends requests; with a hold, one that stays at its server.
type requestStep struct {
	template *template
	hold     string
}

func (s *requestStep) do(r *run) error {
	r.last = r.last[:0]
	if s.hold != "" {
		return r.holdOne(s)
	}
	for n := range s.template.count() {
		if n&0xff == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		r.sendOne(s.template, n)
	}
	return nil
}

// releaseStep lets held requests be answered.
type releaseStep []string

func (s releaseStep) do(r *run) error {
	for _, name := range s {
		held := r.world.held(name)
		if len(held) == 0 {
			if r.gone[name] {
				delete(r.gone, name) // it gave up waiting, and told so
				continue
			}
			return fmt.Errorf("no request %s is held; held: %s", name, or(strings.Join(r.heldNames(), ", "), "none"))
		}
		for _, v := range held {
			v.hold = ""
			r.world.wake(v, released)
		}
	}
	return nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// reloadStep reads a configuration again; empty: the one in force, which changes nothing.
type reloadStep string

func (s reloadStep) do(r *run) error { return r.reload(string(s)) }

// stateStep prints the state of an upstream's peers; empty: of all.
type stateStep string

func (s stateStep) do(r *run) error { return r.printState(string(s)) }

// totalsStep prints the totals so far, and begins to count anew.
type totalsStep struct{}

func (totalsStep) do(r *run) error {
	r.printTotals()
	r.totals = newTotals()
	return nil
}
