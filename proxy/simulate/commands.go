package simulate

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// command is a word that a line can begin with. Parse may return no step when the line speaks of the whole scenario.
type command struct {
	usage string
	parse func(s *Scenario, args []string) (step, error)
}

// errUsage: the arguments are not of the command's form.
var errUsage = errors.New("usage")

var commands map[string]command

func init() { // a literal would be a cycle through commandNames
	commands = map[string]command{
		"seed":    {"NUMBER", parseSeed},
		"start":   {"TIME (RFC 3339, such as 2026-01-01T00:00:00Z)", parseStart},
		"server":  {"SERVER... BEHAVIOUR", parseServer},
		"request": {"METHOD TARGET... [times=N] [from=IP] [host=NAME] [port=N] [scheme=https] [header=NAME:VALUE]... [body=TEXT]", parseRequest},
		"hold":    {"NAME METHOD TARGET [from=IP] [host=NAME] [port=N] [scheme=https] [header=NAME:VALUE]... [body=TEXT]", parseHold},
		"release": {"NAME...", parseRelease},
		"expect":  {"PEER[,PEER][*N]... | status CODE[*N]...", parseExpect},
		"wait":    {"DURATION (such as 500ms, 10s, 1h)", parseWait},
		"align":   {"(nothing more)", parseAlign},
		"reload":  {"[FILE]", parseReload},
		"change":  {"UPSTREAM SERVER PARAMETER...", parseChange},
		"join":    {"UPSTREAM SERVER [PARAMETER]...", parseJoin},
		"leave":   {"UPSTREAM SERVER", parseLeave},
		"state":   {"[UPSTREAM]", parseState},
		"totals":  {"(nothing more)", parseTotals},
	}
}

func commandNames() string {
	names := make([]string, 0, len(commands))
	for n := range commands {
		names = append(names, n)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

func parseSeed(s *Scenario, args []string) (step, error) {
	if len(args) != 1 {
		return nil, errUsage
	}
	if len(s.steps) > 0 || s.seeds {
		return nil, errors.New("stands once, and before anything that happens")
	}
	n, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q: want a whole number from 0 to 18446744073709551615", args[0])
	}
	s.seed, s.seeds = n, true
	return nil, nil
}

func parseStart(s *Scenario, args []string) (step, error) {
	if len(args) != 1 {
		return nil, errUsage
	}
	if len(s.steps) > 0 || !s.start.IsZero() {
		return nil, errors.New("stands once, and before anything that happens")
	}
	t, err := time.Parse(time.RFC3339Nano, args[0])
	if err != nil || t.Year() < 1971 || t.Year() > 2200 {
		return nil, fmt.Errorf("%q: want a time of the years 1971 to 2200 in RFC 3339", args[0])
	}
	s.start = t
	return nil, nil
}

func parseServer(_ *Scenario, args []string) (step, error) {
	if len(args) < 2 {
		return nil, errUsage
	}
	last := len(args) - 1
	b, err := parseBehaviour(args[last])
	if err != nil {
		return nil, err
	}
	return &setStep{servers: args[:last], does: b}, nil
}

func parseWait(_ *Scenario, args []string) (step, error) {
	if len(args) != 1 {
		return nil, errUsage
	}
	d, err := time.ParseDuration(args[0])
	if err != nil || d < 0 || d > 365*longest {
		return nil, fmt.Errorf("%q: want a time from 0s to 8760h, such as 500ms, 10s or 1h30m", args[0])
	}
	return waitStep(d), nil
}

func parseAlign(_ *Scenario, args []string) (step, error) {
	if len(args) != 0 {
		return nil, errUsage
	}
	return alignStep{}, nil
}

func parseRelease(_ *Scenario, args []string) (step, error) {
	if len(args) == 0 {
		return nil, errUsage
	}
	return releaseStep(args), nil
}

func parseReload(_ *Scenario, args []string) (step, error) {
	switch len(args) {
	case 0:
		return reloadStep(""), nil
	case 1:
		return reloadStep(args[0]), nil
	}
	return nil, errUsage
}

func parseChange(_ *Scenario, args []string) (step, error) {
	if len(args) < 3 {
		return nil, errUsage
	}
	return &editStep{upstream: args[0], server: args[1], params: args[2:], what: changes}, nil
}

func parseJoin(_ *Scenario, args []string) (step, error) {
	if len(args) < 2 {
		return nil, errUsage
	}
	return &editStep{upstream: args[0], server: args[1], params: args[2:], what: joins}, nil
}

func parseLeave(_ *Scenario, args []string) (step, error) {
	if len(args) != 2 {
		return nil, errUsage
	}
	return &editStep{upstream: args[0], server: args[1], what: leaves}, nil
}

func parseState(_ *Scenario, args []string) (step, error) {
	if len(args) > 1 {
		return nil, errUsage
	}
	return stateStep(strings.Join(args, "")), nil
}

func parseTotals(_ *Scenario, args []string) (step, error) {
	if len(args) != 0 {
		return nil, errUsage
	}
	return totalsStep{}, nil
}
