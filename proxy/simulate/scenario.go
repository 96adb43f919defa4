package simulate

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Scenario is a parsed scenario file: what happens, in order. SCENARIOS.md describes the language.
type Scenario struct {
	name  string
	seed  uint64
	seeds bool      // the file names a seed
	start time.Time // zero: the usual one
	steps []line
}

// line is one line of a scenario.
type line struct {
	number int
	does   step
}

// step is what a line does in a run.
type step interface{ do(r *run) error }

// Fault is something wrong in a scenario.
type Fault struct {
	File   string
	Line   int
	Reason string
}

// Error is FILE:LINE: reason.
func (f *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Reason) }

// maxLine bounds a line of a scenario, in bytes.
const maxLine = 64 << 10

// maxFaults bounds how many faults of one file are told.
const maxFaults = 100

// ParseScenario reads a scenario; name is that of its file. The error joins a *Fault for each line that can't be used.
func ParseScenario(name string, text []byte) (*Scenario, error) {
	s := &Scenario{name: name}
	var faults []error
	number := 0
	for raw := range strings.Lines(string(text)) {
		number++
		if err := s.parse(number, strings.TrimSuffix(raw, "\n")); err != nil {
			faults = append(faults, &Fault{name, number, err.Error()})
		}
		if len(faults) == maxFaults {
			faults = append(faults, &Fault{name, number, "and perhaps more: the rest was not read"})
			break
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

func (s *Scenario) parse(number int, text string) error {
	if len(text) > maxLine {
		return fmt.Errorf("the line has %d bytes; allowed: %d", len(text), maxLine)
	}
	all, err := words(text)
	if err != nil || len(all) == 0 {
		return err
	}
	c, ok := commands[all[0]]
	if !ok {
		return fmt.Errorf("%q: no such command; allowed: %s", all[0], commandNames())
	}
	does, err := c.parse(s, all[1:])
	if errors.Is(err, errUsage) {
		return fmt.Errorf("%s: want %s %s", all[0], all[0], c.usage)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", all[0], err)
	}
	if does != nil {
		s.steps = append(s.steps, line{number, does})
	}
	return nil
}
