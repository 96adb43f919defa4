package api

import (
	"strings"
	"sync"
	"time"
)

// toldEvery is how often a failure that goes on is told again: requests are many.
const toldEvery = 10 * time.Second

// trouble is when a failure was told last. Safe for concurrent use.
type trouble struct {
	mu    sync.Mutex
	told  time.Time
	quiet int // failures since then
}

// due reports whether a failure is to be told now, and how many went by untold.
func (t *trouble) due(now time.Time) (quiet int, tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.told.IsZero() && now.Sub(t.told) < toldEvery {
		t.quiet++
		return 0, false
	}
	quiet, t.told, t.quiet = t.quiet, now, 0
	return quiet, true
}

// publishFailed tells that beats were not written. Every beat of a batch has the same cause as a rule, and a cause that
// names the same address again and again says no more than once.
func (a *api) publishFailed(failed []error, beats int) {
	quiet, tell := a.publishing.due(time.Now())
	if !tell {
		return
	}
	a.cfg.Logger.Error().Str("error", causes(failed)).Int("beats", beats).Int("untold", quiet).Msg("publish of posted beats failed")
}

// causes is the distinct lines of the errors, on one line.
func causes(errs []error) string {
	var lines []string
	seen := map[string]bool{}
	for _, err := range errs {
		if err == nil {
			continue
		}
		for line := range strings.Lines(err.Error()) {
			line = strings.TrimSpace(line)
			if line != "" && !seen[line] {
				seen[line] = true
				lines = append(lines, line)
			}
		}
	}
	if len(lines) == 0 {
		return "no publisher"
	}
	return strings.Join(lines, "; ")
}
