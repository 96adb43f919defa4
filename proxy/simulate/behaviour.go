package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kind is what a virtual server does with a request.
type kind uint8

const (
	answers   kind = iota // status, after header; the body after another while
	refuses               // no connection: refused
	drops                 // no connection: nobody answers in the time allowed
	hangs                 // reads the request and never answers
	closes                // reads the request and closes
	badHeader             // answers with a header field that is none
	garbage               // answers without a status line
	partial               // announces 100 bytes, sends 10 and closes
	keeps                 // answers and leaves the connection open
	stales                // likewise, but closes when the connection is used again
)

// behaviour is what a virtual server does from now on.
type behaviour struct {
	kind         kind
	status       int
	header, body time.Duration
	field, value string // extra field of the answer
}

var plainKinds = map[string]kind{
	"ok": answers, "refuse": refuses, "drop": drops, "hang": hangs, "close": closes, "badheader": badHeader,
	"garbage": garbage, "partial": partial, "keep": keeps, "stale": stales,
}

// behaviours is what can be said, for messages.
const behaviours = "ok, status:N, refuse, drop, hang, close, delay:MS, slow:H:B, badheader, garbage, partial, cookie:K=V, xaccel:URI, keep, stale"

// parseBehaviour reads the text of a behaviour, such as status:503.
func parseBehaviour(text string) (behaviour, error) {
	b := behaviour{status: 200}
	word, rest, has := strings.Cut(text, ":")
	if k, ok := plainKinds[word]; ok && !has {
		b.kind = k
		return b, nil
	}
	var err error
	switch {
	case !has:
		err = errUnknown
	case word == "status":
		b.status, err = number(rest, 200, 599)
	case word == "delay":
		b.header, err = milliseconds(rest)
	case word == "slow":
		head, tail, two := strings.Cut(rest, ":")
		if !two {
			return b, fmt.Errorf("behaviour %q: want slow:HEADER_MS:BODY_MS", text)
		}
		if b.header, err = milliseconds(head); err == nil {
			b.body, err = milliseconds(tail)
		}
	case word == "cookie" && rest != "":
		b.field, b.value = "Set-Cookie", rest
	case word == "xaccel" && rest != "":
		b.field, b.value = "X-Accel-Redirect", rest
	default:
		err = errUnknown
	}
	if err != nil {
		return b, fmt.Errorf("behaviour %q: %w", text, err)
	}
	return b, nil
}

var errUnknown = fmt.Errorf("unknown; allowed: %s", behaviours)

func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: want a whole number from %d to %d", text, least, most)
	}
	return n, nil
}

func milliseconds(text string) (time.Duration, error) {
	n, err := number(text, 0, int(longest/time.Millisecond))
	return time.Duration(n) * time.Millisecond, err
}
