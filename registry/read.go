package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
)

// What follows in read*.go is what people and tools ask. Each list is one plain SELECT at READ COMMITTED: it sees one
// moment, takes no lock and makes no writer wait. Lists go by a key (never OFFSET), so a page costs the same wherever
// it is, and a row that stays is seen exactly once by a reader of all pages, whatever comes and goes meanwhile.

// MaxPage is the most rows one list call returns; a Limit of 0 or above it means MaxPage.
const MaxPage = 10_000

// SkewUnknown is what the hot row's skew holds while an instance's beats carry no sent_at.
const SkewUnknown = math.MinInt64

// agentEnd is the first name after all that begin with AgentPrefix: the next character after '-'.
const agentEnd = "upstrand."

// InstanceKey is the place of an instance in the order of instance lists.
type InstanceKey struct{ Service, ID string }

// InstanceFilter chooses instances. Zero fields choose all; lists mean any of theirs, Tags all of theirs.
type InstanceFilter struct {
	Services []string
	// Agents includes the services named upstrand-…, which are left out otherwise unless Services names them.
	Agents   bool
	Zone     *string // "" means those that name none
	Version  *string
	Tags     []string
	Status   []Status
	Liveness []Liveness
	After    *InstanceKey // only those that come later in the order by service and id
	Limit    int
}

// InstanceView is an instance as people look at it: the row, its hot part, and its age on its partition's clock.
type InstanceView struct {
	Instance
	Seen *Seen // nil: no beat is recorded for it
	// Unproven is how much stream time it has been unproven for; nil when it is not.
	Unproven *time.Duration
	// URLOwner is the other service that owns the path of its url; empty when its own does, when it has none, or when
	// the instance is not routable.
	URLOwner string
}

// Seen is what the last beat of an instance left behind.
type Seen struct {
	Part        int32
	Clock       time.Duration  // of the partition, at the beat
	Age         *time.Duration // of the partition's clock, since the beat; nil: the partition has no clock any more
	Incarnation int64
	Seq         int64
	ReceivedAt  int64          // Unix µs, listener's clock
	Skew        *time.Duration // listener's clock minus sender's; nil: beats carry no sent_at
	Load        Load
}

// ServiceFilter chooses services. Services named upstrand-… are never among them.
type ServiceFilter struct {
	Prefix string
	State  ServiceState // empty: any
	After  string       // only those with a later name
	Limit  int
}

// ServiceView is a service with its instances counted and its URL paths.
type ServiceView struct {
	Service
	Groups []InstanceGroup // by zone, version, liveness, status; empty for a service without instances
	Paths  []string        // of its route claims, in order
	// Refused are the claims of other services on paths that its routable instances serve: by path and owner.
	Refused []RouteClaim
}

// ServiceState is what becomes of a request for a service.
type ServiceState string

// The states of a service.
const (
	ServiceServing  ServiceState = "serving"  // some instance takes traffic
	ServiceDraining ServiceState = "draining" // only draining instances are left: nothing new is sent to any
	ServiceEmpty    ServiceState = "empty"    // no instance is routed to
)

// State is decided by the instances that take something new, which draining ones do not.
func (v *ServiceView) State() ServiceState {
	if v.EmptiedAt != 0 {
		return ServiceEmpty
	}
	for _, g := range v.Groups {
		if g.Count > 0 && g.Liveness.Routable() && g.Status != StatusDraining {
			return ServiceServing
		}
	}
	return ServiceDraining
}

// InstanceGroup is how many instances of a service are alike in these four.
type InstanceGroup struct {
	Zone, Version string
	Liveness      Liveness
	Status        Status
	Count         int
}

// EventFilter chooses events. With After set they come oldest first, else newest first.
type EventFilter struct {
	Service string
	ID      string
	Kinds   []string
	Since   int64  // Unix µs; happened then or later
	After   *int64 // only those with a higher Seq
	Before  int64  // only those with a lower Seq; 0: no bound
	Limit   int
}

// RejectedKey is the place of a record in the order of rejected lists: newest first.
type RejectedKey struct {
	At     int64
	Part   int32
	Offset int64
}

// RejectedFilter chooses rejected records.
type RejectedFilter struct {
	Reasons []string
	Part    *int32
	After   *RejectedKey // only those that come later in the order, newest first
	Limit   int
}

// RejectedView is a rejected record with its partition.
type RejectedView struct {
	Part int32
	Rejected
}

// AgentView is an agent: the instance that it is, and its report if it has sent one.
type AgentView struct {
	InstanceView
	Report     []byte // JSON; nil: none
	ReportedAt int64  // Unix µs, listener's clock
}

// where collects conditions and their arguments.
type where struct {
	conds []string
	args  []any
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

// in adds column IN (list), unless the list is empty.
func in[T ~string](w *where, column string, list []T) {
	if len(list) == 0 {
		return
	}
	args := make([]any, len(list))
	for i, v := range list {
		args[i] = string(v)
	}
	w.add(column+" IN ("+strings.TrimSuffix(strings.Repeat("?,", len(list)), ",")+")", args...)
}

// prefix adds that column begins with prefix, as a range, so that an index on it serves.
func (w *where) prefix(column, prefix string) {
	if prefix == "" {
		return
	}
	w.add(column+" >= ?", prefix)
	if end := prefixEnd(prefix); end != "" {
		w.add(column+" < ?", end)
	}
}

// prefixEnd is the first text, in the order of code points, after all that begin with prefix; empty: there is none.
func prefixEnd(prefix string) string {
	r := []rune(prefix)
	for i := len(r) - 1; i >= 0; i-- {
		switch {
		case r[i] == utf8.MaxRune:
			continue
		case r[i] == 0xd7ff: // what follows is no character
			r[i] = 0xe000
		default:
			r[i]++
		}
		return string(r[:i+1])
	}
	return ""
}

// String is the WHERE clause, empty when nothing was added.
func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE (" + strings.Join(w.conds, ") AND (") + ")"
}

func pageLimit(n int) int {
	if n <= 0 || n > MaxPage {
		return MaxPage
	}
	return n
}

// list runs one SELECT into a slice of rows.
func list[T any](ctx context.Context, db *sqlx.DB, what, query string, args ...any) ([]T, error) {
	var rows []T
	if err := db.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("registry: read %s: %w", what, err)
	}
	return rows, nil
}

// one runs one SELECT of one row; no row is ErrNotFound.
func one[T any](ctx context.Context, db *sqlx.DB, what, query string, args ...any) (T, error) {
	var none T
	rows, err := list[T](ctx, db, what, query, args...)
	if err != nil {
		return none, err
	}
	if len(rows) == 0 {
		return none, fmt.Errorf("registry: %s: %w", what, ErrNotFound)
	}
	return rows[0], nil
}

// IsNotFound reports whether err says that there is no such row.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
