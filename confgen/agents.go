package confgen

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// implausible bounds what an agent's report may claim: a report is only a beat, which many can send, and an epoch near
// the end of its range could never be raised above.
const implausible = 1 << 53

// report is what an agent says of its topology, as far as it matters here; numbers are texts.
type report struct {
	Epoch   string `json:"topology_epoch"`
	Version string `json:"topology_version"`
}

// readAgents finds the highest epoch and version that agents report, dead ones included: they may come back with what
// they have on disk.
func (t *term) readAgents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.g.cfg.DatabaseTimeout)
	defer cancel()
	agents, err := t.g.cfg.Fleet.Agents(ctx)
	if err != nil {
		return fmt.Errorf("confgen: read the agents' reports: %w", err)
	}
	var highest topology.Pair
	for _, a := range agents {
		p := parseReport(a.Report)
		highest.Epoch, highest.Version = max(highest.Epoch, p.Epoch), max(highest.Version, p.Version)
	}
	t.agents = highest
	t.agentsAt = time.Now()
	return nil
}

// parseReport gives zeros for what is absent, unreadable or implausible.
func parseReport(raw json.RawMessage) topology.Pair {
	var r report
	if json.Unmarshal(raw, &r) != nil {
		return topology.Pair{}
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 || n > implausible {
			return 0
		}
		return n
	}
	return topology.Pair{Epoch: number(r.Epoch), Version: number(r.Version)}
}
