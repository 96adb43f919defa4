package http2

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
)

// lost says in nginx's words what an error of the exchange means.
func (a *attempt) lost(err error) error {
	a.waiting.close()
	if a.body != nil {
		if e := a.body.stopped(); e != nil {
			return a.fail(e.Class, e.Err)
		}
	}
	if cause := context.Cause(a.own); cause != nil && errors.Is(cause, errTimeout) {
		a.conn.retired.Store(true) // it may lead nowhere any more
		return a.fail(forward.OnTimeout, cause)
	}
	reset, wasReset := resetOf(err)
	switch {
	case unread(err), wasReset && reset.Code == codeRefused, a.answer == nil && a.conn.socket.unread(a.before):
		a.progress.Unread = true
	case wasReset:
		a.progress.In = resetSize
	}
	if timedOut(err) {
		return a.fail(forward.OnTimeout, err)
	}
	if wasReset && reset.Code == codeProtocol && !strings.Contains(err.Error(), "received from peer") ||
		strings.Contains(err.Error(), "malformed response") || errors.Is(err, errInforms) {
		return a.fail(forward.OnInvalidHeader, err)
	}
	return a.fail(forward.OnError, err)
}

func (a *attempt) fail(class forward.Class, err error) error {
	a.failed = &forward.Error{Class: class, Err: err}
	return a.failed
}

func timedOut(err error) bool {
	var t net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// reset is a stream's error. net/http gives its own to whoever asks for a type with these fields.
type reset struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (r reset) Error() string { return "reset" }

const (
	codeProtocol = 1
	codeRefused  = 7
	resetSize    = 13 // bytes of a RST_STREAM frame
)

func resetOf(err error) (r reset, ok bool) {
	ok = errors.As(err, &r)
	return r, ok
}

// unread tells whether an error proves that the peer never looked at the request: its GOAWAY said which it had seen last,
// or the connection was over before the request was written. net/http has no types for these.
func unread(err error) bool {
	if err == nil {
		return false
	}
	switch text := err.Error(); text {
	case "http2: Transport received Server's graceful shutdown GOAWAY", "http2: client conn not usable", "http2: client conn is closed",
		"http2: client conn could not be established":
		return true
	default:
		return strings.HasPrefix(text, "http2: Transport received GOAWAY from server ErrCode:")
	}
}
