// Package rungroup runs the parts of a process side by side and ends them one after another, the last added first, under
// one deadline. So what was built upon something is gone before that something goes: a listener before its database.
//
// It does not restart anything: a part that ends takes the process down with it.
package rungroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// Group is filled with Add and OnStop and then run once.
type Group struct {
	log      zerolog.Logger
	deadline time.Duration
	parts    []*part
}

type part struct {
	name string
	run  func(context.Context) error // nil for a step that only acts at the end
	stop func(context.Context) error
	end  context.CancelFunc
	done chan struct{}
	err  error
}

// New returns an empty group. deadline is the time that all steps of ending have together.
func New(log zerolog.Logger, deadline time.Duration) *Group {
	return &Group{log: log, deadline: deadline}
}

// Allow makes the deadline at least d, for a part that needs longer to end.
func (g *Group) Allow(d time.Duration) { g.deadline = max(g.deadline, d) }

// Add adds a part that works until its context ends, and returns only when nothing of it is left.
func (g *Group) Add(name string, run func(context.Context) error) {
	g.parts = append(g.parts, &part{name: name, run: run})
}

// OnStop adds a step for the end, such as closing what later parts use. Its context carries the deadline.
func (g *Group) OnStop(name string, stop func(context.Context) error) {
	g.parts = append(g.parts, &part{name: name, stop: stop})
}

// Run starts every part and blocks until ctx ends or a part returns, then ends the rest: the last added first, each
// waited for before the next. The result joins the errors of all parts. Ending because ctx ended is no error; a part that
// returns before it was told to is one. Past the deadline Run gives up and names what is still running.
func (g *Group) Run(ctx context.Context) error {
	first := make(chan *part, len(g.parts))
	for _, p := range g.parts {
		g.start(context.WithoutCancel(ctx), p, first)
	}
	var early *part
	select {
	case <-ctx.Done():
		g.log.Info().Str("cause", context.Cause(ctx).Error()).Msg("ending")
	case early = <-first:
		g.log.Warn().Str("part", early.name).AnErr("error", early.err).Msg("a part ended by itself: ending the rest")
	}
	return errors.Join(ended(early), g.end(early))
}

// Abandon ends the parts of a group that is not run, without a word: each is started with a context that has ended
// already, so that it gives back what it holds, and the steps of the end are taken.
func (g *Group) Abandon() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	first := make(chan *part, len(g.parts))
	for _, p := range g.parts {
		g.start(over, p, first)
	}
	_ = g.end(nil)
}

// start runs p on a context of its own, so that the end of the process reaches the parts in our order and not at once.
func (g *Group) start(ctx context.Context, p *part, first chan<- *part) {
	if p.run == nil {
		return
	}
	own, cancel := context.WithCancel(ctx)
	p.end, p.done = cancel, make(chan struct{})
	go func() {
		p.err = p.run(own)
		close(p.done)
		first <- p
	}()
}

// ended is the error of a part that ended without being told to.
func ended(p *part) error {
	switch {
	case p == nil:
		return nil
	case p.err == nil || errors.Is(p.err, context.Canceled):
		return fmt.Errorf("%s ended by itself", p.name)
	}
	return fmt.Errorf("%s: %w", p.name, p.err)
}

// end ends the parts, the last added first. The error of early is already told.
func (g *Group) end(early *part) error {
	ctx, cancel := context.WithTimeout(context.Background(), g.deadline)
	defer cancel()
	var errs []error
	for i := len(g.parts) - 1; i >= 0; i-- {
		p := g.parts[i]
		err := p.finish(ctx)
		if p == early {
			continue
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
		g.log.Debug().Str("part", p.name).AnErr("error", err).Msg("ended")
	}
	return errors.Join(errs...)
}

// finish ends one part and waits for it, at most until ctx ends. A part that is out of time is still told to end.
func (p *part) finish(ctx context.Context) error {
	if p.run == nil {
		return p.stop(ctx)
	}
	p.end()
	select {
	case <-p.done:
		return p.err
	default:
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return errors.New("still running at the deadline")
	}
}
