package simulate

import (
	"fmt"
	"io"
	"strings"

	"github.com/upstrand/upstrand/proxy/balance"
)

// printWhy lists a pick's candidates with their state before and after it, and says why the winner won.
func printWhy(w io.Writer, e *balance.Explanation) {
	for i := range e.Candidates {
		c := &e.Candidates[i]
		mark := " "
		if c.Won {
			mark = "*"
		}
		fmt.Fprintf(w, "       %s %-16s weight %-4d current %6s -> %-6s effective %4s -> %-4s %s\n", mark, c.ID, c.Weight,
			inUnits(c.CurrentBefore, e.Unit), inUnits(c.CurrentAfter, e.Unit),
			inUnits(c.EffectiveBefore, e.Unit), inUnits(c.EffectiveAfter, e.Unit), about(c, e.Unit))
	}
	fmt.Fprintf(w, "         %s\n", e.Why)
}

// about is what else is to be said of a candidate.
func about(c *balance.Candidate, unit int) string {
	words := []string{c.Reason.String()}
	if c.Passed != "" {
		words = append(words, "passed over by "+string(c.Passed))
	}
	if c.Debt > 0 {
		words = append(words, "debt "+inUnits(c.Debt, unit))
	}
	if c.Backup {
		words = append(words, "backup")
	}
	if c.Conns > 0 || c.MaxConns > 0 {
		words = append(words, fmt.Sprintf("open %d", c.Conns))
	}
	if c.MaxConns > 0 {
		words[len(words)-1] += fmt.Sprintf(" of %d", c.MaxConns)
	}
	if c.Fails > 0 {
		words = append(words, fmt.Sprintf("fails %d", c.Fails))
	}
	if c.Key != nil {
		words = append(words, fmt.Sprintf("key %g", *c.Key))
	}
	return strings.Join(words, ", ")
}
