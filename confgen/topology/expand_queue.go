package topology

import (
	"strings"
	"time"
)

// Queue lets requests wait for whom no server has room by its max_conns.
type Queue struct {
	Most    int // that wait at once; 0: none do
	Timeout time.Duration
}

// queueTimeout is how long a request waits unless the line says it, as in nginx Plus.
const queueTimeout = time.Minute

// queue is queue NUMBER [timeout=TIME].
func (x *upstreamExpansion) queue(d Directive) string {
	const want = "want it once, as queue NUMBER [timeout=TIME]"
	if len(d) < 2 || len(d) > 3 || !x.once("queue") {
		return want
	}
	n, err := ParseNumber(d[1], 1)
	if err != nil {
		return "invalid number: " + err.Error()
	}
	q := Queue{Most: n, Timeout: queueTimeout}
	if len(d) == 3 {
		text, ok := strings.CutPrefix(d[2], "timeout=")
		if !ok {
			return invalidParameter(d[2], want)
		}
		if q.Timeout, err = ParseTime(text); err != nil || q.Timeout == 0 {
			return "invalid timeout \"" + clip(text) + "\"; " + want
		}
	}
	x.group.Queue = q
	return ""
}
