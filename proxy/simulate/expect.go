package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// expectStep says what the request line before it must have led to.
type expectStep struct {
	status bool     // of statuses, else of peers
	want   []string // one for each request
}

func parseExpect(s *Scenario, args []string) (step, error) {
	if len(args) == 0 {
		return nil, errUsage
	}
	e := &expectStep{}
	if args[0] == "status" {
		e.status, args = true, args[1:]
	}
	sent := 0
	for i := len(s.steps) - 1; i >= 0 && sent == 0; i-- {
		switch before := s.steps[i].does.(type) {
		case *expectStep:
		case *requestStep:
			sent = before.template.count()
		default:
			i = 0
		}
	}
	if sent == 0 {
		return nil, errors.New("stands right after a request or a hold")
	}
	for _, arg := range args {
		word, times, err := parseTimes(arg)
		if err != nil {
			return nil, err
		}
		if len(e.want)+times > sent {
			return nil, fmt.Errorf("more expectations than requests: the line before sends %d", sent)
		}
		for range times {
			e.want = append(e.want, word)
		}
	}
	if len(e.want) != sent {
		return nil, fmt.Errorf("%d expectations for %d requests", len(e.want), sent)
	}
	return e, nil
}

// parseTimes reads WORD or WORD*N.
func parseTimes(arg string) (word string, times int, err error) {
	word, n, has := strings.Cut(arg, "*")
	if word == "" {
		return "", 0, fmt.Errorf("%q: want WORD or WORD*N", arg)
	}
	if !has {
		return word, 1, nil
	}
	times, err = number(n, 1, maxTimes)
	return word, times, err
}

// maxUnmet bounds how many unmet expectations of one line are told.
const maxUnmet = 5

func (e *expectStep) do(r *run) error {
	var unmet []string
	bad := 0
	for i, want := range e.want {
		got := r.last[i].peers
		if e.status {
			got = r.last[i].status
		}
		if got == want {
			continue
		}
		if bad++; bad <= maxUnmet {
			unmet = append(unmet, fmt.Sprintf("request %d: expected %s, got %s", i+1, want, got))
		}
	}
	if bad > maxUnmet {
		unmet = append(unmet, fmt.Sprintf("and %d more", bad-maxUnmet))
	}
	if bad > 0 {
		if name := e.stranger(r); name != "" {
			unmet = append(unmet, r.noServer(name).Error())
		}
		r.unmet(strings.Join(unmet, "; "))
	}
	return nil
}

// stranger is the first server expected that the configuration does not have; empty: it has all.
func (e *expectStep) stranger(r *run) string {
	if e.status {
		return ""
	}
	known := r.servers()
	for _, want := range e.want {
		for name := range strings.SplitSeq(want, ",") {
			if name != "-" && !slices.Contains(known, name) {
				return name
			}
		}
	}
	return ""
}
