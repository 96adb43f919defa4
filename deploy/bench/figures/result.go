package figures

import (
	"errors"
	"fmt"
	"time"
)

// MaxWait is how long a connection may wait for an answer in a run that counts. A proxy that loses a wake-up leaves its client waiting for ever while all
// others go on, which no rate shows.
const MaxWait = time.Second

// Result is what one run of the load generator saw. Times are in nanoseconds in JSON.
type Result struct {
	Requests int           `json:"requests"` // answered in the window, each with the status and length that were expected
	Elapsed  time.Duration `json:"elapsed"`  // length of the window
	CPU      CPU           `json:"cpu"`      // that the watched process used in the window
	Longest  time.Duration `json:"longest"`  // longest wait for an answer, warm-up and end included
	Failed   int           `json:"failed"`   // answers that were wrong, and connections that broke
	Stalled  int           `json:"stalled"`  // connections that waited MaxWait or longer
	Fault    string        `json:"fault,omitempty"`
	Late     time.Duration `json:"late,omitempty"` // at a fixed rate: the most that a request was sent after its time
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
	P999     time.Duration `json:"p999"`
}

// Err says why the run does not count; nil when it does.
func (r Result) Err() error {
	switch {
	case r.Failed > 0:
		return fmt.Errorf("%d failed, first: %s", r.Failed, r.Fault)
	case r.Stalled > 0:
		return fmt.Errorf("%d connections waited %v for an answer", r.Stalled, MaxWait)
	case r.Requests == 0:
		return errors.New("no request was answered")
	}
	return nil
}

// PerCPUSecond is the requests that the watched process served in a second of its processor time; 0 when too little of it was used to say.
func (r Result) PerCPUSecond() float64 {
	if r.CPU.Total() < 5*tick {
		return 0
	}
	return float64(r.Requests) / r.CPU.Total().Seconds()
}

// Cost is the processor time of one request.
func (r Result) Cost() time.Duration {
	if r.Requests == 0 {
		return 0
	}
	return r.CPU.Total() / time.Duration(r.Requests)
}

// PerSecond is the requests answered in a second of the clock.
func (r Result) PerSecond() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Requests) / r.Elapsed.Seconds()
}
