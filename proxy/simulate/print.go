package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// print tells of the picks of a request that have not been told, one line each, unless only totals are wanted.
func (r *run) print(v *visit) {
	for ; v.told < len(v.picks); v.told++ {
		r.picks++
		if r.csv != nil {
			r.csv.add(r, v, v.told)
		}
		if !r.options.Totals {
			r.printWalk(v, v.told)
			r.printPick(v, v.told)
		}
	}
	r.printWalk(v, len(v.picks))
	if len(v.picks) == 0 && len(v.tries) == 0 && !r.options.Totals {
		fmt.Fprintf(r.out, "%6s %7d %10s  answered %s without a pick\n", "", v.number, r.clockText(r.world.Now()), v.status())
	}
}

// printWalk tells what the request's walk did up to its i-th pick and has not been told.
func (r *run) printWalk(v *visit, i int) {
	for len(v.walk) > 0 && v.walk[0].upto <= i {
		r.head()
		fmt.Fprintf(r.out, "%6s %7d  %s\n", "", v.number, v.walk[0].text)
		v.walk = v.walk[1:]
	}
}

// head names the columns, once.
func (r *run) head() {
	if r.headed {
		return
	}
	r.headed = true
	fmt.Fprintf(r.out, "%6s %7s %10s  %-12s %-16s %-13s  %s\n", "pick", "request", "time", "upstream", "server", "answer",
		"current/effective weight of each server after the pick")
}

func (r *run) printPick(v *visit, i int) {
	e := v.picks[i].explained
	r.head()
	peer := or(e.Winner, "-")
	fmt.Fprintf(r.out, "%6d %7d %10s  %-12s %-16s %-13s  %s\n", r.picks, v.number, r.clockText(e.Time.UnixNano()), e.Upstream, peer,
		v.answer(i), debts(e))
	if r.options.Explain {
		printWhy(r.out, e)
	}
}

// clockText is a moment as seconds since the run began.
func (r *run) clockText(ns int64) string {
	return fmt.Sprintf("+%.3fs", time.Duration(ns-r.began).Seconds())
}

// answer is what came of the i-th pick: the result of the last try that followed it.
func (v *visit) answer(i int) string {
	from, to := v.picks[i].upto, len(v.tries)
	if i+1 < len(v.picks) {
		to = v.picks[i+1].upto
	}
	if from >= to {
		return v.picks[i].explained.Reason.String()
	}
	return or(v.tries[to-1].result, "held")
}

// tellEnd tells the end of a request that was held.
func (r *run) tellEnd(v *visit) {
	r.totals.add(v)
	r.print(v)
	if v.hold != "" {
		r.gone[v.name] = true
	}
	if r.options.Totals {
		return
	}
	fmt.Fprintf(r.out, "%6s %7d %10s  %s, held until now, is answered %s after %s\n", "", v.number, r.clockText(r.world.Now()), v.name,
		v.status(), v.peers())
}

// debts is the current and effective weight of each candidate after a pick, and why it was passed over.
func debts(e *balance.Explanation) string {
	var b strings.Builder
	for i := range e.Candidates {
		c := &e.Candidates[i]
		if i > 0 {
			b.WriteString("  ")
		}
		fmt.Fprintf(&b, "%s %s/%s", c.ID, inUnits(c.CurrentAfter, e.Unit), inUnits(c.EffectiveAfter, e.Unit))
		b.WriteString(remarks(c, e.Unit))
	}
	return b.String()
}

// remarks is what beside its weights is to be said of a candidate, in brackets; empty: nothing.
func remarks(c *balance.Candidate, unit int) string {
	var words []string
	if c.Debt > 0 {
		words = append(words, "debt "+inUnits(c.Debt, unit))
	}
	if c.Reason != balance.Eligible {
		words = append(words, c.Reason.String())
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// inUnits is a weight as people wrote it.
func inUnits(n, unit int) string {
	if unit <= 1 {
		return strconv.Itoa(n)
	}
	return strconv.FormatFloat(float64(n)/float64(unit), 'f', -1, 64)
}
