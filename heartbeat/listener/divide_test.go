package listener

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/upstrand/upstrand/registry"
)

// One record that the registry can't take is given up, alone, and everything else is applied.
func TestRefusedRecordIsGivenUpAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		reg.before = func(_ int32, b registry.Batch) error {
			for _, r := range b.Records {
				if r.Sighting != nil && r.Sighting.ID == "poison" {
					return errors.New("data too long")
				}
			}
			return nil
		}
		for i := range 1000 {
			l.beat("orders", "a", int64(i+1))
			if i == 333 || i == 700 {
				l.beat("orders", "poison", 1)
			}
		}
		o := testOwner(t, testConfig(reg), 0, l)
		stop := o.start()
		settle(2 * time.Minute)
		stop()
		reg.exactlyOnce(t, 0, l)
		if reg.bad[registry.RejectedNotApplied] != 2 || len(reg.bad) != 1 || reg.seq("orders/a") != 1000 {
			t.Errorf("bad %v, seq %d", reg.bad, reg.seq("orders/a"))
		}
	})
}

// A connection that the driver lost says nothing about the records: none is given up.
func TestLostConnectionsCostNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		reg.before = func(_ int32, b registry.Batch) error {
			for _, r := range b.Records {
				if r.Sighting != nil {
					return fmt.Errorf("move: %w", mysql.ErrInvalidConn)
				}
			}
			return nil
		}
		l.beat("orders", "a", 1)
		stop := testOwner(t, testConfig(reg), 0, l).start()
		settle(time.Minute)
		reg.look(func() { reg.before = nil })
		settle(10 * time.Second)
		stop()
		reg.exactlyOnce(t, 0, l)
		if _, bad := reg.refused(""); bad != 0 || reg.seq("orders/a") != 1 {
			t.Errorf("%d given up, seq %d", bad, reg.seq("orders/a"))
		}
	})
}

// A database that can be read but refuses every write for a while (a full disk) loses nothing, and is noticed soon when
// it takes writes again.
func TestRefusingDatabaseComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		full := true
		reg.before = func(int32, registry.Batch) error {
			if full {
				return errors.New("disk full")
			}
			return nil
		}
		stop := testOwner(t, testConfig(reg), 0, l).start()
		for i := range 300 {
			l.beat("orders", "a", int64(i+1))
			settle(time.Second)
		}
		reg.look(func() { full = false })
		settle(5 * time.Second)
		if _, bad := reg.refused(""); reg.seq("orders/a") != 300 || bad != 0 {
			t.Errorf("seq %d, %d given up", reg.seq("orders/a"), bad)
		}
		stop()
		reg.exactlyOnce(t, 0, l)
	})
}

// A database that refuses every beat and nothing else (a broken table) costs few of them, and is noticed soon when it
// takes beats again.
func TestDatabaseThatRefusesEveryBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		broken := true
		reg.before = func(_ int32, b registry.Batch) error {
			for _, r := range b.Records {
				if broken && r.Sighting != nil {
					return errors.New("table is corrupt")
				}
			}
			return nil
		}
		stop := testOwner(t, testConfig(reg), 0, l).start()
		for i := range 150 {
			l.beat("orders", "a", int64(i+1))
			settle(time.Second)
		}
		reg.look(func() { broken = false })
		settle(5 * time.Second)
		if n, _ := reg.refused(registry.RejectedNotApplied); n > 6 || reg.seq("orders/a") != 150 {
			t.Errorf("%d beats were given up in 150s, seq %d", n, reg.seq("orders/a"))
		}
		stop()
		reg.exactlyOnce(t, 0, l)
	})
}

// Nor do pulses pay when judging fails.
func TestFailingJudgementKeepsPulses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		stop := testOwner(t, testConfig(reg), 0, l).start()
		settle(5500 * time.Millisecond)
		reg.look(func() {
			reg.before = func(_ int32, b registry.Batch) error {
				if b.CaughtUp {
					return errors.New("judge broke")
				}
				return nil
			}
		})
		settle(time.Minute)
		stop()
		if reg.next(0) < 20 || l.end()-reg.next(0) > 2 {
			t.Errorf("stands at %d of %d", reg.next(0), l.end())
		}
	})
}

// If judging is what fails, beats must not pay for it.
func TestFailingJudgementCostsNoBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		reg.before = func(_ int32, b registry.Batch) error {
			if b.CaughtUp {
				return errors.New("judge broke")
			}
			return nil
		}
		stop := testOwner(t, testConfig(reg), 0, l).start()
		for i := range 100 {
			l.beat("orders", "a", int64(i+1))
			settle(300 * time.Millisecond)
		}
		if got := reg.seq("orders/a"); got < 90 {
			t.Errorf("only %d of 100 beats are applied in time", got)
		}
		settle(time.Minute)
		stop()
		if len(reg.bad) != 0 || reg.seq("orders/a") != 100 {
			t.Errorf("bad %v, seq %d", reg.bad, reg.seq("orders/a"))
		}
	})
}

func TestHalves(t *testing.T) {
	batch := func(records, rejected []int64) registry.Batch {
		b := registry.Batch{From: 0, Next: 100, LogEnd: 100, CaughtUp: true}
		for _, o := range records {
			b.Records = append(b.Records, registry.Record{Offset: o})
		}
		for _, o := range rejected {
			b.Rejected = append(b.Rejected, registry.Rejected{Offset: o})
		}
		return b
	}
	for name, b := range map[string]registry.Batch{
		"records":         batch([]int64{1, 2, 3, 50, 99}, nil),
		"two records":     batch([]int64{7, 90}, nil),
		"rejected":        batch(nil, []int64{0, 1, 2}),
		"one of each":     batch([]int64{5}, []int64{9}),
		"one of each too": batch([]int64{9}, []int64{5}),
		"mixed":           batch([]int64{1, 3, 5, 7}, []int64{2, 4, 6, 99}),
	} {
		left, right, ok := halves(b)
		if !ok || left.From != 0 || left.Next != right.From || right.Next != 100 || left.CaughtUp || !right.CaughtUp ||
			len(left.Records)+len(left.Rejected) == 0 || len(right.Records)+len(right.Rejected) == 0 ||
			len(left.Records)+len(right.Records) != len(b.Records) || len(left.Rejected)+len(right.Rejected) != len(b.Rejected) {
			t.Errorf("%s: %+v | %+v", name, left, right)
		}
		for _, r := range left.Records {
			if r.Offset >= left.Next {
				t.Errorf("%s: record %d is left of %d", name, r.Offset, left.Next)
			}
		}
		for _, r := range right.Rejected {
			if r.Offset < right.From {
				t.Errorf("%s: bad record %d is right of %d", name, r.Offset, right.From)
			}
		}
	}
	if _, _, ok := halves(batch([]int64{4}, nil)); ok {
		t.Error("one record was cut in two")
	}
}
