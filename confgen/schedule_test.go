package confgen

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// TestSchedules runs random histories: a registry that changes, processes that are killed, stopped and woken, calls that
// fail, do their work without telling, or do it too late, and a topic that is wiped. However it goes, an observer never
// goes back and never sees two contents of one version, and when the mishaps end everything converges.
func TestSchedules(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	for seed := range uint64(n) {
		synctest.Test(t, func(t *testing.T) {
			runSchedule(t, seed)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

func runSchedule(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 42))
	w := newWorld(t)
	quiet := func(c *Config) { c.Logger = zerolog.Nop() }
	mishaps := func() func(int, string) mishap {
		return faults(rand.New(rand.NewPCG(seed, uint64(w.n))), 25, failBefore, failAfter, failLate, failLate, dieBefore, dieAfter, dieWithin, stopBefore, stopAfter)
	}
	var living []*process
	start := func() {
		w.fault = mishaps()
		living = append(living, w.start(quiet))
		w.fault = nil
	}
	start()
	start()
	for range 40 {
		service := string(rune('a' + rng.IntN(4)))
		name := fmt.Sprintf("%s/%d", service, rng.IntN(5))
		switch rng.IntN(12) {
		case 0, 1, 2:
			w.db.join(name)
		case 3, 4:
			w.db.leave(name)
		case 5:
			w.db.forget(service)
		case 6:
			i := rng.IntN(len(living))
			p := living[i]
			living = append(living[:i], living[i+1:]...)
			if rng.IntN(2) == 0 {
				p.end()
			} else {
				p.kill()
			}
			start()
		case 7:
			living[rng.IntN(len(living))].pause()
		case 8:
			for _, p := range living {
				p.resume()
			}
		case 9:
			if rng.IntN(6) == 0 {
				w.tp.wipe()
			}
		}
		settle(time.Duration(rng.IntN(600)) * time.Millisecond)
	}
	for _, p := range living {
		p.setFault(nil)
		p.resume()
	}
	last := w.start(quiet) // some of the others may be dead
	settle(8 * time.Second)
	w.converged()
	if t.Failed() {
		for i, m := range w.tp.messages {
			t.Logf("%d %s %s (%d bytes)", i, m.Pair, m.Key, len(m.Value))
		}
	}
	for _, p := range append(living, last) {
		p.kill()
	}
}
