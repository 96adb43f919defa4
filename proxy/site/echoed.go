package site

import (
	"context"
	"slices"
)

// echoed is the handler of echo.
func (r *request) echoed(context.Context) outcome {
	e := r.conf.core.echo
	if e == nil { // an if block without an echo of its own, in a location with one
		return r.nothing()
	}
	var b []byte
	for _, line := range e.lines {
		for i, t := range line.texts {
			if i > 0 {
				b = append(b, ' ')
			}
			b = t.Append(b, r)
		}
		if !line.bare {
			b = append(b, '\n')
		}
	}
	if r.Excess() {
		return fail(500)
	}
	return r.local(e.status, textOf(slices.Clip(b)))
}
