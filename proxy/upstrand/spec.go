package upstrand

import (
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Spec is an upstrand as it is configured.
type Spec struct {
	Members       []Member // in the order of the lines
	PerRequest    bool     // each request starts at the first member, else each starts one further
	StartRandom   bool     // the first request, or with PerRequest each, starts at random
	Next          Statuses // after which another stop may follow
	NonIdempotent bool     // also for a POST, LOCK or PATCH that a backend answered
	// SentIsFinal: a POST, LOCK or PATCH of which anything was sent is not sent again, also when nobody answered it. Nginx
	// sends it again.
	SentIsFinal bool
	Timeout     time.Duration // no stop begins later than this after the first; 0: no limit
}

// Member is one upstream of an upstrand, in one of its lists.
type Member struct {
	Name      string
	Backup    bool
	Blacklist time.Duration  // how long it is passed over after a listed status, in whole seconds; 0: never
	Group     *balance.Group // nil: it has nobody to give
	Link      any            // the owner's
}

func (m *Member) list() int {
	if m.Backup {
		return 1
	}
	return 0
}

// Statuses are the results of a stop after which another one may follow. The zero value has none.
type Statuses struct {
	numbers [10]uint64 // bits
	errors  bool
	timeout bool
}

// ParseStatuses reads nginx's words: error, timeout, 4xx, 5xx and numbers from 100 to 599. It reports the first that is
// none.
func ParseStatuses(words []string) (s Statuses, bad string, ok bool) {
	for _, word := range words {
		switch {
		case word == "error":
			s.errors = true
		case word == "timeout":
			s.timeout = true
		case !s.add(word):
			return s, word, false
		}
	}
	return s, "", true
}

func (s *Statuses) add(word string) bool {
	if class, ok := strings.CutSuffix(word, "xx"); ok && len(class) == 1 && class[0] >= '1' && class[0] <= '5' {
		from := int(class[0]-'0') * 100
		for n := from; n < from+100; n++ {
			s.set(n)
		}
		return true
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 100 || n > 599 {
		return false
	}
	s.set(n)
	return true
}

func (s *Statuses) set(n int) { s.numbers[n/64] |= 1 << (n % 64) }

// Has tells whether a status is listed. Own is one that no backend answered with: 502 is then `error`, 504 `timeout`.
// Numbers and classes mean both kinds.
func (s *Statuses) Has(status int, own bool) bool {
	switch {
	case own && status == 502 && s.errors, own && status == 504 && s.timeout:
		return true
	case status < 100 || status > 599:
		return false
	}
	return s.numbers[status/64]&(1<<(status%64)) != 0
}

// nonIdempotent is nginx's list of methods that are not repeated once a backend answered.
func nonIdempotent(method []byte) bool {
	switch string(method) {
	case "POST", "LOCK", "PATCH":
		return true
	}
	return false
}
