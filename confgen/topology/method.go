package topology

import "time"

// Method is how an upstream picks. The zero value is smooth weighted round robin. It is comparable.
type Method struct {
	Name       string // "" (round robin), least_conn, least_time, ip_hash, hash, random
	Key        string // hash: its text, with variables
	Consistent bool   // hash
	Two        bool   // random
	LastByte   bool   // least_time: the whole answer counts, else the time to its head
	Inflight   bool   // least_time
}

// Sticky is how an upstream keeps a client at the server it had.
type Sticky struct {
	Kind string // cookie, route, learn

	// Of cookie. Texts in which variables may stand are as written.
	Name     string // of the cookie
	Expires  string // empty: of the session; max; or seconds as ParseSeconds reads them
	Domain   string // may hold variables
	SameSite string // strict, lax, none, or a variable
	Path     string
	Secure   bool
	HTTPOnly bool

	Variables []string // of route: the first that is not empty is the id; each with its $

	// Of learn.
	Create, Lookup []string      // variables, each with its $
	Zone           string        // the table's name
	ZoneSize       int64         // bytes, as written in zone=NAME:SIZE
	Timeout        time.Duration // since the last use
	OnHeader       bool          // learn at the answer's head, else at its end
}

// Keepalive is what an upstream says of its kept connections.
type Keepalive struct {
	Idle     int           // idle connections kept; 0: none are; -1: not said, DefaultKeepalive
	Requests int           // on one connection; 0: not said, DefaultKeepaliveRequests
	Time     time.Duration // a connection's age from which it is not kept; 0: not said, DefaultKeepaliveTime
	Timeout  time.Duration // idle time; 0: not said, DefaultKeepaliveTimeout
}

// The defaults of kept connections and of sticky learn, which are nginx's.
const (
	DefaultKeepalive         = 32
	DefaultKeepaliveRequests = 1000
	DefaultKeepaliveTime     = time.Hour
	DefaultKeepaliveTimeout  = time.Minute
	DefaultLearnTimeout      = 10 * time.Minute
)

// UnsetKeepalive is the Keepalive of an upstream that says nothing of it.
var UnsetKeepalive = Keepalive{Idle: -1}
