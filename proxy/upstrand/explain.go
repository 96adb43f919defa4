package upstrand

import (
	"fmt"
	"strconv"
)

// Step is one thing that a walk did, for explanations.
type Step struct {
	What     string // start, skip, clear, next, final; stay, leave: it ends for another reason than the result
	Upstream string // where the walk begins or ends, the one that was passed over, or whose result it is
	Backup   bool
	Status   int    // of the result
	Own      bool   // no backend answered with it
	Why      string // code: turn, first, chance, blacklisted, all_blacklisted, a Cause, a Final
	To       string // next: where the walk goes on
	Seconds  int64  // skip: left on the blacklist
}

// String is the step in plain words.
func (s Step) String() string {
	switch s.What {
	case "start":
		return fmt.Sprintf("begins at %s: %s", s.Upstream, starts[s.Why])
	case "stay":
		return fmt.Sprintf("%s has the answer after all: %s", s.Upstream, words[s.Why])
	case "leave":
		return fmt.Sprintf("ends at %s: %s", s.Upstream, words[s.Why])
	case "skip":
		return fmt.Sprintf("%s is passed over: blacklisted for %d s more", s.Upstream, s.Seconds)
	case "clear":
		return "all upstreams are blacklisted: all are taken off the list, and one stop is made"
	case "next":
		return fmt.Sprintf("%s came to %s, which is listed: on to %s", s.Upstream, s.result(), s.To)
	}
	return fmt.Sprintf("%s came to %s, which is the answer: %s", s.Upstream, s.result(), words[s.Why])
}

func (s Step) result() string {
	switch {
	case s.Own && s.Status == 504:
		return "a timeout (504)"
	case s.Own:
		return fmt.Sprintf("an error (%d)", s.Status)
	}
	return strconv.Itoa(s.Status)
}

var starts = map[string]string{
	"turn":   "it is its turn",
	"first":  "each request begins at the first that is not blacklisted",
	"chance": "each request begins at a random one",
}

var words = map[string]string{
	Unlisted.String():       "next_upstream_statuses does not list it",
	LastStop.String():       "no other upstream is left",
	NotRepeatable.String():  "the method is not repeated (non_idempotent is not listed)",
	TimeUp.String():         "next_upstream_timeout has passed",
	BodyLost.String():       "the body is not held any more",
	AllBlacklisted.String(): "all upstreams were blacklisted, so that there is one stop",
	NoBudget.String():       "the retry budget is spent",
	Left.String():           "the client is gone",
}

func (w *Walk) skip(s *stop, sec int64) {
	if w.tell != nil {
		w.tell(Step{What: "skip", Upstream: s.Name, Backup: s.Backup, Why: "blacklisted", Seconds: s.until(sec) - sec})
	}
}

// explain tells what a result led to. When the walk goes on, the next stop is at hand already.
func (w *Walk) explain(r Result, final Final) {
	if w.tell == nil {
		return
	}
	step := Step{What: "final", Status: r.Status, Own: r.Own, Why: final.String()}
	of := w.at
	if final == Going {
		step.What, step.Why, step.To = "next", causeOf(r).String(), w.at.Name
		of = w.back()
	}
	if of != nil {
		step.Upstream, step.Backup = of.Name, of.Backup
	}
	w.tell(step)
}
