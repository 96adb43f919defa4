package proxy

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
)

// What the topology asks for and is not built is told once, and not again with every version.
func TestSlowStartIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *Config) { c.Logger = zerolog.New(&log).Level(zerolog.WarnLevel) })
	b := newBackend(t, "b", nil)
	slow := func(id string) topology.Instance {
		in := instance(id, b.addr())
		in.SlowStart = topology.Duration(30 * time.Second)
		return in
	}
	w.set("orders", slow("a"), slow("b"))
	w.apply()
	w.set("orders", slow("a"))
	w.set("users", slow("u"))
	w.apply()
	if n := strings.Count(log.String(), "upstream orders: slow_start"); n != 1 {
		t.Errorf("told %d times:\n%s", n, &log)
	}
	if n := strings.Count(log.String(), "upstream users: slow_start"); n != 1 {
		t.Errorf("the new one is told %d times:\n%s", n, &log)
	}
}

// A client of a service that is going away is told that, not that there is nobody.
func TestOnlyDrainingInstancesAreLeft(t *testing.T) {
	w := newWorld(t, nil)
	in := instance("a", newBackend(t, "a", nil).addr())
	in.Drain = true
	w.set("orders", in)
	w.apply()
	if got := w.get("/orders"); got.status != 503 || !strings.Contains(got.body, "only draining instances are left") || got.header.Get("Retry-After") == "" {
		t.Errorf("%+v", got)
	}
}
