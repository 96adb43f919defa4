package roles

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/telemetry"
)

// clients is the settings of who may come, and of what backends are told of them. A file says it for itself.
type clients struct {
	ProxyProtocol   bool
	Conns           int
	ConnsPerAddress int
	Forwarded       bool
	Via             string
}

func (c *clients) flags(set *settings.Set) {
	g := set.Group("Clients")
	g.Bool(&c.ProxyProtocol, "proxy-protocol", false,
		"connections begin with a PROXY protocol header, version 1 or 2; the client that it names counts where --trusted-proxies has the one who sends it")
	g.Int(&c.Conns, "max-conns", 0, 0, 1<<30, "most open connections of clients at each address that is listened on; 0: no limit")
	g.Int(&c.ConnsPerAddress, "max-conns-per-address", 0, 0, 1<<30, "most open connections of one client's address; 0: no limit")
	g.Bool(&c.Forwarded, "forwarded", false, "tell instances who asks by the field Forwarded (RFC 7239) too")
	g.Match(&c.Via, "via", "", "name of this proxy in the field Via, which no other one on the way has: a request that has it already is refused with 508; absent: no Via is written",
		"1 to 64 letters, digits and . _ : -", func(s string) bool { return s == "" || s == agentID(s) })
	set.Check(func() (ps settings.Problems) {
		switch {
		case set.Given("conf"):
			for flag, instead := range map[string]string{
				"proxy-protocol": "listen … proxy_protocol", "max-conns": "listen … max_conns=N", "max-conns-per-address": "listen … max_conns_per_address=N",
				"forwarded": "proxy_set_header Forwarded …", "via": "proxy_set_header Via …",
			} {
				if set.Given(flag) {
					ps = append(ps, settings.Problem{Flag: flag, Allowed: "not with --conf: the file says it by " + instead})
				}
			}
		case c.ProxyProtocol && !set.Given("trusted-proxies"):
			ps = append(ps, settings.Problem{Flag: "proxy-protocol", Value: "true", Allowed: "only with --trusted-proxies, which says whose headers are believed"})
		}
		return ps
	})
}

// door is what they say of an address that is listened on.
func (c *clients) door(d proxy.Door) proxy.Door {
	d.ProxyProtocol, d.Conns, d.ConnsPerAddress = c.ProxyProtocol, c.Conns, c.ConnsPerAddress
	return d
}

// traces is the settings of OpenTelemetry spans.
type traces struct {
	Endpoint string
	Service  string
	Sample   float64

	tracer *telemetry.Tracer // nil: off
}

func (x *traces) flags(set *settings.Set) {
	g := set.Group("Traces")
	g.String(&x.Endpoint, "otel-endpoint", "",
		"URL that OpenTelemetry spans are posted to by OTLP over HTTP, such as http://localhost:4318/v1/traces; absent: what OTEL_EXPORTER_OTLP_ENDPOINT says; without both there are no spans, and traceparent and tracestate are passed on untouched")
	g.String(&x.Service, "otel-service-name", AgentService, "service.name of the spans; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go before it")
	g.Float(&x.Sample, "otel-sample", 1, 0, 1, "part of the requests that are followed of those whose traceparent does not say whether they are")
}

// open makes the tracer, where spans are wanted.
func (x *traces) open(p *Process) (proxy.Tracer, error) {
	endpoint := x.Endpoint
	if endpoint == "" {
		endpoint = telemetry.Endpoint(os.Getenv)
	}
	if endpoint == "" {
		return nil, nil
	}
	header, err := telemetry.Header(os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if x.tracer, err = telemetry.New(telemetry.Config{Endpoint: endpoint, Header: header, Service: x.Service, Version: Version(), Sample: x.Sample}); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { p.Log.Warn().Err(err).Str("role", "proxy").Msg("spans are lost") }))
	return x.tracer, nil
}

// close delivers what is left, for a while.
func (x *traces) close(p *Process) {
	if x.tracer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := x.tracer.Shutdown(ctx); err != nil {
		p.Log.Warn().Err(err).Msg("the last spans are lost")
	}
}
