package forward

import "time"

// Class is what went wrong with an attempt, one bit each, in nginx's words. As a set it says what another attempt may
// follow.
type Class uint32

// The classes. The first three are failures of the peer whether listed or not.
const (
	OnError         Class = 1 << iota // refused, reset, closed before an answer
	OnTimeout                         // no connection, no answer or no progress in time
	OnInvalidHeader                   // what came is no HTTP answer
	OnHTTP403
	OnHTTP404
	OnHTTP429
	OnHTTP500
	OnHTTP502
	OnHTTP503
	OnHTTP504

	// PeerGone: the peer left the topology after it was picked. Never listed; the attempt is as if it had not been.
	PeerGone
	// ClientBody: the request's body could not be read from the client. Never listed.
	ClientBody
	// BadRequest: the engine can't send the request, and tried nothing. Never listed.
	BadRequest
	// NoSocket: this host has no file descriptor, or no memory, for another connection. It says nothing of the peer, and nobody
	// else could be reached either. Never listed.
	NoSocket
)

var classNames = map[Class]string{
	OnError: "error", OnTimeout: "timeout", OnInvalidHeader: "invalid_header",
	OnHTTP403: "http_403", OnHTTP404: "http_404", OnHTTP429: "http_429",
	OnHTTP500: "http_500", OnHTTP502: "http_502", OnHTTP503: "http_503", OnHTTP504: "http_504",
	PeerGone: "peer_gone", ClientBody: "client_body", BadRequest: "bad_request", NoSocket: "no_socket",
}

// String is nginx's word for a single class.
func (c Class) String() string {
	if s, ok := classNames[c]; ok {
		return s
	}
	return "unknown"
}

// ParseClass reads nginx's word for a class that can be listed.
func ParseClass(word string) (Class, bool) {
	for c, s := range classNames {
		if s == word && c < PeerGone {
			return c, true
		}
	}
	return 0, false
}

// OfStatus is the class of a backend's status, 0 when it is no class.
func OfStatus(status int) Class {
	switch status {
	case 403:
		return OnHTTP403
	case 404:
		return OnHTTP404
	case 429:
		return OnHTTP429
	case 500:
		return OnHTTP500
	case 502:
		return OnHTTP502
	case 503:
		return OnHTTP503
	case 504:
		return OnHTTP504
	}
	return 0
}

// Policy says when another attempt may follow a failed one.
type Policy struct {
	Next          Class         // classes after which another attempt may follow
	NonIdempotent bool          // also for POST, LOCK and PATCH whose request was sent
	Tries         int           // attempts in one upstream; 0: as many as it has peers
	Within        time.Duration // no attempt begins later than this after the request's first; 0: no limit
}

// DerivedPolicy is that of routes which nobody declared: 3 tries within 10 s after errors and timeouts.
func DerivedPolicy() Policy {
	return Policy{Next: OnError | OnTimeout, Tries: 3, Within: 10 * time.Second}
}
