package site

import (
	"strconv"

	"github.com/upstrand/upstrand/proxy/forward"
)

// upstrandVariables tell of a request's walk, stop by stop.
var upstrandVariables = definitions{
	"upstrand_path":            {Get: upstrandPath},
	"upstrand_addr":            walked(appendAddr),
	"upstrand_status":          walked(appendStatus),
	"upstrand_connect_time":    walked(func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Connect) }),
	"upstrand_header_time":     walked(func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Header) }),
	"upstrand_response_time":   walked(func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Response) }),
	"upstrand_response_length": walked(func(b []byte, t *forward.Try) []byte { return strconv.AppendInt(b, t.Length, 10) }),
	"upstrand_cache_status":    walked(nil), // there is no cache
}

// eachStop gives the stops of the walk; one that was never entered is the only one.
func (r *request) eachStop(tell func(*walkStop)) bool {
	w := &r.walk
	if w.upstrand == nil {
		return false
	}
	for i := range w.stops {
		tell(&w.stops[i])
	}
	if at := w.walk.At(); at != nil && len(w.stops) == 0 {
		tell(&walkStop{name: at.Name, blank: true})
	}
	return true
}

func upstrandPath(r *request) (string, bool) {
	var room [128]byte
	b := room[:0]
	r.eachStop(func(s *walkStop) {
		if len(b) > 0 {
			b = append(b, " -> "...)
		}
		b = append(b, s.name...)
	})
	return string(b), len(b) > 0
}

// walked is a variable that says something of each try of each stop.
func walked(add func([]byte, *forward.Try) []byte) definition {
	return definition{Get: func(r *request) (string, bool) {
		var room [256]byte
		b := room[:0]
		ok := r.eachStop(func(s *walkStop) {
			if len(b) > 0 {
				b = append(b, ' ')
			}
			b = append(append(append(b, '('), s.name...), ") "...)
			if add != nil {
				b = appendTries(b, r.triesOf(s), add)
			}
		})
		return string(b), ok && len(b) > 0
	}}
}

// triesOf is the tries of a stop as far as they are told.
func (r *request) triesOf(s *walkStop) forward.Trail {
	trail := r.up.trail
	switch {
	case s.blank, s.name == interceptedStop && (r.up.answered == 0 || r.up.kept):
		return nil
	case s.to >= 0:
		return trail[s.from:s.to]
	}
	tries := trail[min(s.from, len(trail)):]
	for len(tries) > 0 && tries[0].Upstream == "" {
		tries = tries[1:]
	}
	return tries
}

// visible is the tries that $upstream_… variables tell: with a walk, those up to the end of its first stop.
func (r *request) visible() forward.Trail {
	if stops := r.walk.stops; len(stops) > 0 && stops[0].to >= 0 {
		return r.up.trail[:stops[0].to]
	}
	return r.up.trail
}
