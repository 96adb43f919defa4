package balance

// Reason says why a peer was passed over, or, as the result of a pick, why nobody could be given.
type Reason uint8

// The reasons, the most telling one last: a pick that finds nobody reports the greatest that it met.
const (
	Eligible Reason = iota // may be given
	Empty                  // the group has no peers at all
	Gone                   // left the topology; seen in old tables too
	Down                   // declared down
	Draining               // keeps what is pinned to it and gets nothing new
	Tried                  // already tried in this request
	Failed                 // failed too often within its window
	Full                   // has as many open attempts as it may have
)

var reasonNames = [...]string{"eligible", "empty", "gone", "down", "draining", "tried", "failed", "full"}

// String is the bounded code used in metrics, logs and the debug pages.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}
