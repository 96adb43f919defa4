package proxy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/limit"
	"github.com/upstrand/upstrand/proxy/site"
)

// limits is what outlives tables about limit_req and limit_conn: the counts of their zones, and who is told of them.
type limits struct {
	zones limit.Zones
	held  *prometheus.CounterVec // zone, result
	log   *quietLog
}

func newLimits(log zerolog.Logger, r prometheus.Registerer) (*limits, error) {
	l := &limits{
		held: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "upstrand_proxy_limited_total",
			Help: "Requests that a limit_req or limit_conn held up, by zone and what came of them."}, []string{"zone", "result"}),
		log: newQuietLog(log),
	}
	if r == nil {
		return l, nil
	}
	return l, r.Register(l.held)
}

var limitLevels = map[string]zerolog.Level{"info": zerolog.InfoLevel, "notice": zerolog.InfoLevel, "warn": zerolog.WarnLevel, "error": zerolog.ErrorLevel}

// Limited is site.Limits'.
func (t *table) Limited(l site.Limited) {
	all := t.proxy.limits
	result := limitResults[l.What]
	all.held.WithLabelValues(l.Zone, result).Inc()
	line := all.log.line(limitLevels[l.Level])
	if line == nil {
		return
	}
	line = line.Str("zone", l.Zone).Str("result", result).Stringer("client", l.Client).Str("server", l.Server)
	withRequest(line, l.In).Msg(limitTexts[l.What] + l.Directive)
}

var limitTexts = map[string]string{
	site.LimitDelayed: "a request is delayed by ", site.LimitRejected: "a request is rejected by ",
	site.LimitDelayedDry: "a request would be delayed by ", site.LimitRejectedDry: "a request would be rejected by ",
}

// know begins the series of a site's zones at 0, so that the first event is an increase.
func (l *limits) know(s *site.Site) {
	requests, conns := s.LimitZones()
	for _, zone := range requests {
		for _, result := range limitResults {
			l.held.WithLabelValues(zone, result)
		}
	}
	for _, zone := range conns {
		l.held.WithLabelValues(zone, limitResults[site.LimitRejected])
		l.held.WithLabelValues(zone, limitResults[site.LimitRejectedDry])
	}
}

var limitResults = map[string]string{
	site.LimitDelayed: "delayed", site.LimitRejected: "rejected", site.LimitDelayedDry: "delayed_dry_run", site.LimitRejectedDry: "rejected_dry_run",
}

// believe makes the client of a connection that began with a PROXY protocol header the one whom the header names, where
// the one who sent it is trusted to. Of a file its own directives say that.
func (p *Proxy) believe(r *forward.Request) {
	if r.Proxy.Source.IsValid() && p.trusted(r.Remote) {
		r.Remote, r.RemotePort = r.Proxy.Source.Addr(), r.Proxy.Source.Port()
	}
}
