// Package roles builds upstrand's roles from their settings and puts them into a process: one role in production, all of
// them in upstrand-dev. Both run this very code.
//
// It decides nothing that a role does; it declares flags, waits for what a role needs, and connects the parts.
package roles

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/cmd/internal/admin"
	"github.com/upstrand/upstrand/cmd/internal/await"
	"github.com/upstrand/upstrand/cmd/internal/rungroup"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Process is what the roles of one process share.
type Process struct {
	Log     zerolog.Logger
	Metrics *prometheus.Registry
	Ready   *admin.Readiness
	Group   *rungroup.Group
	Mux     *http.ServeMux // of the admin server: roles add pages of their own

	closing chan struct{} // closed when the end begins
	admin   string        // address of the admin server; empty without one
	succession
}

// NewProcess returns a process without roles. deadline is what its end may take.
func NewProcess(log zerolog.Logger, deadline time.Duration) *Process {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "upstrand_build_info", Help: "1, labelled with what this program was built from.",
		ConstLabels: prometheus.Labels{"version": Version()},
	}, func() float64 { return 1 }))
	ready := admin.NewReadiness()
	return &Process{
		Log: log, Metrics: metrics, Ready: ready, Group: rungroup.New(log, deadline), Mux: admin.Handler(ready, metrics),
		closing: make(chan struct{}), succession: newSuccession(),
	}
}

// Admin serves health, readiness, metrics and profiles on addr; nothing when addr is empty.
func (p *Process) Admin(addr string) error {
	if addr == "" {
		return nil
	}
	ln, _, err := p.listen(addr, "admin-listen", "admin")
	if err != nil {
		return err
	}
	p.admin = ln.Addr().String()
	admin.Profiles(p.Mux)
	server := admin.NewServer(ln, p.Mux)
	p.pages = server
	p.Group.Add("admin", func(ctx context.Context) error {
		select {
		case <-p.serving: // until then the process before answers
		case <-ctx.Done():
		}
		return server.Run(ctx)
	})
	return nil
}

// AdminAddr is the address that Admin got; empty without one.
func (p *Process) AdminAddr() string { return p.admin }

// Run starts all parts and blocks until ctx ends or one of them does, and everything is down again. The first thing to go
// is readiness, so that whoever sends traffic here stops.
func (p *Process) Run(ctx context.Context) error {
	ctx, p.end = context.WithCancelCause(ctx)
	defer p.end(nil)
	p.Group.Add("systemd", p.tellSystemd)
	p.Group.OnStop("readiness", func(context.Context) error {
		p.Ready.Hold("process", "is ending")
		close(p.closing)
		return nil
	})
	return p.Group.Run(ctx)
}

// Abandon ends the parts of a process that was not built to its end, so that sockets and files are given back.
func (p *Process) Abandon() { p.Group.Abandon() }

// AdminFlags declares --admin-listen with the default of a role; an empty default means that nothing listens unless told.
// pages are those that the role adds.
func AdminFlags(set *settings.Set, addr *string, def string, pages ...string) {
	all := append([]string{"/healthz", "/readyz", "/metrics"}, pages...)
	set.Group("Administration").Listen(addr, "admin-listen", def, true,
		"address for "+strings.Join(all, ", ")+" and /debug/pprof/; empty: none")
}

// part runs a role that is built when what it needs is there. Until then readiness says that it starts, and what it waits
// for.
func (p *Process) part(name string, build func(context.Context) (runner, error)) {
	const starting = "is starting"
	p.Ready.Hold(name, starting)
	p.Group.Add(name, func(ctx context.Context) error {
		r, err := build(await.Observe(ctx, func(waitsFor string) {
			if waitsFor != "" {
				waitsFor = ": " + waitsFor
			}
			p.Ready.Hold(name, starting+waitsFor)
		}))
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("start: %w", err)
		}
		p.Ready.Set(name, r.Ready)
		if n, ok := r.(interface{ Describe() string }); ok {
			p.Ready.Note(name, n.Describe)
		}
		return r.Run(ctx)
	})
}

// runner is what every role is.
type runner interface {
	Run(context.Context) error
	Ready() error
}
