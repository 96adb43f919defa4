package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/script"
)

var mapSetters = map[string]setter{"map": setMap}

// setMap reads map SOURCE $NAME { … }.
func setMap(l *level, n *topology.Node) {
	if !l.args(n, 2, 2) {
		return
	}
	name, ok := strings.CutPrefix(n.Args[1], "$")
	if !ok {
		l.problem(n, fmt.Sprintf("variable %q", n.Args[1]), "$name")
		return
	}
	source := l.template(n, n.Args[0])
	var lines []*topology.Node
	hostnames, volatile := false, false
	for _, line := range n.Block {
		switch {
		case line.Name == "hostnames" && len(line.Args) == 0:
			hostnames = true
		case line.Name == "volatile" && len(line.Args) == 0:
			volatile = true
		default:
			lines = append(lines, line)
		}
	}
	m := script.NewMapping(source, hostnames)
	for _, line := range lines {
		if err := l.mapLine(m, line); err != nil {
			l.problem(line, err.Error(), "KEY VALUE, ~REGEX VALUE, ~*REGEX VALUE, default VALUE, hostnames, volatile")
		}
	}
	if err := l.script.Define(name, !volatile, m.Value); err != nil {
		l.problem(n, err.Error(), "a name of your own")
	}
}

func (l *level) mapLine(m *script.Mapping[*request], line *topology.Node) error {
	if len(line.Args) != 1 {
		return fmt.Errorf("has %d values", len(line.Args))
	}
	to := l.template(line, line.Args[0])
	key := line.Name
	switch {
	case key == "default":
		return m.Default(to)
	case strings.HasPrefix(key, "~"):
		text, fold := strings.CutPrefix(key[1:], "*")
		re, err := l.script.Regex(text, fold)
		if err != nil {
			return err
		}
		m.Pattern(re, to)
		return nil
	}
	return m.Exact(strings.TrimPrefix(key, `\`), to)
}
