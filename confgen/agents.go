package confgen

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// How far above all that is known here, in the database and on the topic, an agent's report may lie. After a restored
// database and a wiped topic agents are ahead by what was lost: 2^32 versions are 68 years of two a second, and 2^24 epochs
// 19 months of a new leader every 3 s. A report is only a beat, so what claims more is not followed.
const (
	farVersion = 1 << 32
	farEpoch   = 1 << 24
)

// report is what an agent says of its topology, as far as it matters here.
type report struct {
	agent string
	pair  topology.Pair
}

// readAgents reads what agents report, dead ones included: they may come back with what they have on disk.
func (t *term) readAgents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.g.cfg.DatabaseTimeout)
	defer cancel()
	agents, err := t.g.cfg.Fleet.Agents(ctx)
	if err != nil {
		return fmt.Errorf("confgen: read the agents' reports: %w", err)
	}
	t.reports = t.reports[:0]
	for _, a := range agents {
		t.reports = append(t.reports, report{agent: a.Instance.Service + "/" + a.Instance.ID, pair: parseReport(a.Report)})
	}
	t.agentsAt = time.Now()
	return nil
}

// weigh finds the highest epoch and version of the plausible reports.
func (t *term) weigh() {
	epoch := max(t.l.current().Epoch, t.mirror.epoch) + farEpoch
	version := max(t.version, min(max(t.version, t.mirror.version)+farVersion, highestFollowed))
	t.agents = topology.Pair{}
	ignored := 0
	var example report
	for _, r := range t.reports {
		if r.pair.Epoch > epoch || r.pair.Version > version {
			ignored, example = ignored+1, r
			continue
		}
		t.agents.Epoch, t.agents.Version = max(t.agents.Epoch, r.pair.Epoch), max(t.agents.Version, r.pair.Version)
	}
	t.g.metrics.implausible.Set(float64(ignored))
	if ignored > 0 && time.Since(t.ignoredAt) >= toldEvery {
		t.ignoredAt = time.Now()
		t.log.Warn().Int("reports", ignored).Str("agent", example.agent).Int64("epoch", example.pair.Epoch).Int64("version", example.pair.Version).
			Msg("ignored agents' reports of an epoch or version too far above what is known here")
	}
}

// parseReport gives zeros for what is absent or unreadable; numbers are texts.
func parseReport(raw json.RawMessage) topology.Pair {
	var r struct {
		Epoch   string `json:"topology_epoch"`
		Version string `json:"topology_version"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return topology.Pair{}
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	return topology.Pair{Epoch: number(r.Epoch), Version: number(r.Version)}
}
