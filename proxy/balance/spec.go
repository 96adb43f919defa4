package balance

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"
)

// Key names a peer within its upstream, across versions of the topology.
type Key struct {
	Backup  bool
	ID      string // instance id, or the server text as declared
	Addr    string // resolved address of a declared server; empty for an instance, which keeps its place when it moves
	Ordinal int    // place among peers that are otherwise equal
}

// Server is what a topology says of one peer. Servers are compared with ==: equal ones change nothing.
type Server struct {
	Key         Key
	Addr        string // ip:port
	Scheme      string // empty: http
	Incarnation int64  // start of the process; a new one starts with clean counters
	Weight      int    // below 1 counts as 1, above 2^24 as that
	MaxConns    int    // open attempts at once; 0: no limit
	MaxFails    int    // failures that disable; 0: never
	FailTimeout time.Duration
	SlowStart   time.Duration // how long the share grows after a first appearance or a recovery; 0: not at all
	Down, Drain bool
	Text        string // what a consistent hash knows it by; empty: Addr
	Route       string // what sticky knows it by; empty: a digest of Addr
}

// maxWeight is the most that a weight counts for. It keeps sums over a hundred thousand peers, in hundredths and times a
// million open attempts, within 63 bits.
const maxWeight = 1 << 24

func (s Server) weight() int { return min(max(s.Weight, 1), maxWeight) }

// sameProcess reports whether s and o are one process at one address, so that its connections and failures go on.
func (s Server) sameProcess(o Server) bool {
	return s.Addr == o.Addr && s.Scheme == o.Scheme && s.Incarnation == o.Incarnation
}

// MethodSpec names a balancing method. The zero value is smooth weighted round robin.
type MethodSpec struct {
	Name       string // "", least_conn, least_time, ip_hash, hash, random
	Consistent bool   // hash
	Two        bool   // random: the better one of two
	LeastConn  bool   // random two: as written; it is the default
	LastByte   bool   // least_time: the whole answer counts, not its head
	Inflight   bool   // least_time: unanswered requests count too
}

// String is the method as a configuration file has it, without a hash's key.
func (m MethodSpec) String() string {
	words := []string{m.Name}
	if m.Name == "" {
		words[0] = "round_robin"
	}
	if m.Name == "least_time" {
		words = append(words, "header")
		if m.LastByte {
			words[1] = "last_byte"
		}
	}
	for _, w := range []struct {
		on   bool
		word string
	}{{m.Consistent, "consistent"}, {m.Two, "two"}, {m.LeastConn, "least_conn"}, {m.Inflight, "inflight"}} {
		if w.on {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// StickySpec says how sessions are bound to peers. The zero value binds none.
type StickySpec struct {
	Kind     string        // "", cookie, route, learn
	Timeout  time.Duration // learn: a session that is not seen for so long is forgotten; 0: 10 minutes
	OnHeader bool          // learn: at the head of the answer, not at its end
	Limit    int           // learn: sessions kept; 0: 65536
}

// Spec is what a topology says of one upstream. Servers stand in order of declaration, main and backup ones mixed.
type Spec struct {
	Servers []Server
	Method  MethodSpec
	Sticky  StickySpec
	// CountSingle: the failures of an only peer count as those of one among several.
	CountSingle bool
	Queue       QueueSpec
}

// Env is what an upstream takes from outside.
type Env struct {
	Clock Clock         // nil: SystemClock
	Rand  func() uint64 // uniform, safe for concurrent use; nil: math/rand/v2
	// Watch is told of every pick, also of those that gave nobody; nil: nobody watches, which costs nothing. It is called
	// under the upstream's mutex and must not call back; what it is given is its own.
	Watch func(*Explanation)
}

func (e Env) filled() Env {
	if e.Clock == nil {
		e.Clock = SystemClock()
	}
	if e.Rand == nil {
		e.Rand = rand.Uint64
	}
	return e
}

// Ask is what a request says about where it wants to go. Methods read it while a Pass lives; it must not change then.
type Ask struct {
	Client  netip.Addr // of the client, for ip_hash
	Key     []byte     // value of hash's key
	Session []byte     // for sticky: a peer's id (cookie, route) or the client's session (learn)
}

// scaled is n·to/from, towards zero; to is 0 or more, from above 0. What is too far off to be a current weight is cut.
func scaled(n, to, from int) int {
	const most = 1 << 56
	sign := 1
	if n < 0 {
		n, sign = -n, -1
	}
	high, low := bits.Mul64(uint64(n), uint64(to))
	if high >= uint64(from) {
		return sign * most
	}
	q, _ := bits.Div64(high, low, uint64(from))
	return sign * int(min(q, most))
}

// within32 keeps a count in the range of the peers' small fields.
func within32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
