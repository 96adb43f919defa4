package listener

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// A batch that had to wait is applied, but nobody is judged by it: what came after it in the log is applied first.
func TestStaleSightOfTheEndJudgesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newFakeLog(), newFakeRegistry()
		stop := testOwner(t, testConfig(reg), 0, l).start()
		settle(2500 * time.Millisecond)
		away := true
		var caught []bool
		reg.look(func() {
			reg.openErr = func() error {
				if away {
					return errAway
				}
				return nil
			}
			reg.before = func(_ int32, b registry.Batch) error {
				if away {
					return errAway
				}
				caught = append(caught, b.CaughtUp)
				return nil
			}
		})
		for i := range 50 {
			l.beat("orders", "a", int64(i+1))
			settle(100 * time.Millisecond)
		}
		reg.look(func() { away = false })
		settle(3 * time.Second)
		stop()
		if len(caught) < 2 || caught[0] || !caught[len(caught)-1] {
			t.Errorf("caught up: %v", caught)
		}
	})
}
