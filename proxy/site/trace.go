package site

import (
	"context"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// Step is one decision on the way of a request.
type Step struct {
	What string // server, location, limit_except, rewrite, redirect, named, error_page, return, proxy
	Text string // what was chosen
	File string // where it stands; empty: nowhere
	Line int
}

type traceKey struct{}

// WithTrace makes Handle tell the decisions of requests with this context, as they are made and from its goroutine.
func WithTrace(ctx context.Context, tell func(Step)) context.Context {
	return context.WithValue(ctx, traceKey{}, tell)
}

// step tells a decision. It is called only with a trace.
func (r *request) step(what, text string, n *topology.Node) {
	s := Step{What: what, Text: strings.Clone(text)} // it may be text of the request, whose memory is used again
	if n != nil {
		s.File, s.Line = n.File, n.Line
	}
	r.trace(s)
}
