package forward

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// Plain answers with a few words of our own. It returns the length of the body.
func Plain(c Client, r *Request, status int, text string, extra ...Field) int64 {
	body := []byte(text + "\n")
	fields := append([]Field{
		{[]byte("Content-Type"), []byte("text/plain; charset=utf-8")},
		{[]byte("Content-Length"), strconv.AppendInt(nil, int64(len(body)), 10)},
	}, extra...)
	if c.Head(status, fields, int64(len(body))) != nil {
		return 0
	}
	if string(r.Method) == http.MethodHead {
		_ = c.End(nil)
		return 0
	}
	if c.Write(body) != nil {
		return 0
	}
	_ = c.End(nil)
	return int64(len(body))
}

// RetryAfter is the field of that name, in whole seconds, at least one.
func RetryAfter(d time.Duration) Field {
	s := max(int64(math.Ceil(d.Seconds())), 1)
	return Field{[]byte("Retry-After"), strconv.AppendInt(nil, s, 10)}
}

// fail answers for an attempt that nobody may repeat.
func (x *Exchange) fail(status int) {
	x.out.Status, x.out.Cause = status, x.cause.String()
	if x.Hooks != nil {
		return
	}
	x.out.Answered = true
	x.out.Bytes = Plain(x.Client, x.Request, status, fmt.Sprintf("%d %s: %s after %s",
		status, x.Name, describe(x.cause), tries(x.out.Attempts)))
}

// nobody answers when the walk found no peer: 503 when it met none at all, 502 when the last try had nobody to go to. For
// Hooks both are nginx's 502.
func (x *Exchange) nobody() {
	if x.out.Attempts > 0 {
		x.out.Status, x.out.Cause = http.StatusBadGateway, x.crowded(FailedNoLive)
		x.tellNobody()
		if x.Hooks != nil {
			return
		}
		x.out.Answered = true
		x.out.Bytes = Plain(x.Client, x.Request, http.StatusBadGateway, fmt.Sprintf("502 %s: %s after %s, no other instance to try",
			x.Name, describe(x.cause), tries(x.out.Attempts)))
		return
	}
	x.out.Cause, x.out.NoPeer = x.crowded(FailedNoPeer), true
	x.tellNobody()
	if x.Hooks != nil {
		x.out.Status = http.StatusBadGateway
		return
	}
	x.out.Answered = true
	x.out.Status = http.StatusServiceUnavailable
	x.out.Bytes = Plain(x.Client, x.Request, http.StatusServiceUnavailable,
		fmt.Sprintf("503 %s: %s", x.Name, whyNone(x.out.Reason)), RetryAfter(x.RetryAfter))
}

func tries(n int) string {
	if n == 1 {
		return "1 try"
	}
	return strconv.Itoa(n) + " tries"
}

func describe(c Class) string {
	switch c {
	case OnTimeout:
		return "no answer in time"
	case OnInvalidHeader:
		return "invalid answer"
	case ClientBody:
		return "the request's body could not be read"
	case BadRequest:
		return "the request can't be passed on"
	case NoSocket:
		return "this proxy has no file descriptor or memory for a connection"
	case PeerGone:
		return "the instance left"
	case OnError:
		return "connection failed"
	}
	return "answered " + c.String()
}

func whyNone(r balance.Reason) string {
	switch r {
	case balance.Failed:
		return "all instances failed lately"
	case balance.Full:
		return "all instances are at their connection limit"
	case balance.Draining:
		return "only draining instances are left"
	case balance.Down:
		return "all servers are declared down"
	}
	return "no live instance"
}
