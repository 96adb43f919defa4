package proxy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
)

// What the topology asks for and can't be used is told once, and not again with every version.
func TestProblemsAreToldOnce(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(c *Config) { c.Logger = zerolog.New(&log).Level(zerolog.WarnLevel) })
	w.set("orders", instance("a", newBackend(t, "b", nil).addr()))
	for version, names := range [][]string{{"one"}, {"one", "two"}, {"one", "two"}} {
		topo := w.topology()
		topo.Version = int64(version + 1)
		for _, name := range names {
			topo.Config.Upstreams = append(topo.Config.Upstreams, topology.Upstream{Name: name, Origin: topology.Declared, Directives: []topology.Directive{{"zap"}}})
		}
		if err := w.p.Apply(topo); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one", "two"} {
		if n := strings.Count(log.String(), "upstream "+name+":"); n != 1 {
			t.Errorf("%s: told %d times:\n%s", name, n, &log)
		}
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
