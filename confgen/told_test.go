package confgen

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// logged is a log to look into.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func (l *logged) into(c *Config) { c.Logger = zerolog.New(l).Level(zerolog.InfoLevel) }

// A standby says that it stands by and who leads, once for each leader, and shows it.
func TestAStandbyTellsWhoLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		log := &logged{}
		first := w.start()
		settle(500 * time.Millisecond)
		second := w.start(log.into)
		defer second.end()
		settle(5 * time.Second)
		if n := log.count("standing by"); n != 1 || log.count(`"leader":"p1"`) != 1 {
			t.Errorf("told %d times: %s", n, &log.text)
		}
		if first.g.Role() != "leads" || second.g.Role() != "stands by; p1 leads" {
			t.Errorf("%q, %q", first.g.Role(), second.g.Role())
		}
		first.end()
		settle(3 * time.Second)
		if second.g.Role() != "leads" {
			t.Errorf("%q", second.g.Role())
		}
	})
}

// What failed and works again is told to work again, once.
func TestRecoveryIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		log := &logged{}
		p := w.start(log.into)
		defer p.end()
		settle(2 * time.Second)
		w.tp.with(func() { w.tp.down = errors.New("no broker") })
		settle(3 * time.Second)
		if log.count("trying again") == 0 || log.count("works again") != 0 {
			t.Errorf("while it is away: %s", &log.text)
		}
		w.tp.with(func() { w.tp.down = nil })
		settle(5 * time.Second)
		if log.count(`"op":"topic","message":"works again"`) != 1 || log.count("works again") != log.count("trying again") {
			t.Errorf("when it is back: %s", &log.text)
		}
	})
}

// A standby that can't reach the database says so now and then, not at every try, and says when it can again.
func TestAskingForTheLeadIsToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.with(func() { w.db.down = errors.New("no database") })
		log := &logged{}
		p := w.start(log.into)
		defer p.end()
		settle(25 * time.Second)
		if n := log.count("ask for the lead"); n != 3 {
			t.Errorf("told %d times in 25 s, want every 10 s", n)
		}
		w.db.with(func() { w.db.down = nil })
		settle(time.Second)
		if log.count(`"op":"lead","message":"works again"`) != 1 {
			t.Errorf("%s", &log.text)
		}
	})
}
