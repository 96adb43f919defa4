package site

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

const splitAllowed = "PERCENT% VALUE with at most two decimals, * VALUE for the rest"

// setSplitClients reads split_clients TEXT $NAME { … }.
func setSplitClients(l *level, n *topology.Node) {
	if !l.args(n, 2, 2) {
		return
	}
	name, ok := strings.CutPrefix(n.Args[1], "$")
	if !ok {
		l.problem(n, "variable "+quote(n.Args[1]), "$name")
		return
	}
	source := l.template(n, n.Args[0])
	split := &script.Split{}
	for _, line := range n.Block {
		if err := addShare(split, line); err != nil {
			l.problem(line, err.Error(), splitAllowed)
		}
	}
	get := func(r *request) (string, bool) { return split.Find(source.Value(r)), true }
	if err := l.script.Define(name, true, get); err != nil {
		l.problem(n, err.Error(), "a name of your own")
	}
}

func addShare(split *script.Split, line *topology.Node) error {
	if len(line.Args) != 1 {
		return fmt.Errorf("has %d values", len(line.Args))
	}
	if line.Name == "*" {
		return split.Add(0, line.Args[0])
	}
	hundredths, ok := parsePercent(line.Name)
	if !ok {
		return fmt.Errorf("percent value %q", line.Name)
	}
	return split.Add(hundredths, line.Args[0])
}

// parsePercent reads a text such as 0.5%, above 0 and with at most two decimals, as hundredths.
func parsePercent(text string) (int, bool) {
	number, ok := strings.CutSuffix(text, "%")
	units, decimals, _ := strings.Cut(number, ".")
	if !ok || number == "" || len(decimals) > 2 || strings.ContainsFunc(units+decimals, func(c rune) bool { return c < '0' || c > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi("0" + units + decimals + "00"[len(decimals):])
	return n, err == nil && n > 0
}
