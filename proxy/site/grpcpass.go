package site

import (
	"maps"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// way is what is said of the way to backends that the handler takes.
func (s *settings) way() *proxySettings {
	if s.byGRPC {
		return &s.grpc
	}
	return &s.proxy
}

// grpcDefaults are what grpc_… says by default: bodies and trailers go both ways as they come, and nothing in an answer is
// rewritten.
func (p *proxySettings) grpcDefaults() {
	p.defaults()
	p.wire.HTTP2, p.wire.Headless = true, false
	p.holdBody, p.trailers, p.redirects = false, true, nil
}

// grpcSetters do what those of proxy_… do, to the settings of grpc_….
var grpcSetters = func() map[string]setter {
	all := map[string]setter{"grpc_pass": setGRPCPass}
	for _, name := range strings.Fields(`set_header connect_timeout read_timeout send_timeout buffer_size intercept_errors next_upstream
		next_upstream_tries next_upstream_timeout hide_header pass_header ignore_headers`) {
		all["grpc_"+name] = forGRPC(proxySetters["proxy_"+name])
	}
	for name := range maps.Keys(sslSetters) {
		all["grpc_"+strings.TrimPrefix(name, "proxy_")] = forGRPC(sslSetters[name])
	}
	return all
}()

func forGRPC(set setter) setter {
	return func(l *level, n *topology.Node) {
		s := l.settings()
		s.proxy, s.grpc = s.grpc, s.proxy
		set(l, n)
		s.proxy, s.grpc = s.grpc, s.proxy
	}
}

func setGRPCPass(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 1, 1) {
		l.passTo(n, &target{node: n, grpc: true})
	}
}

const grpcPassAllowed = "grpc://NAME[:PORT], grpcs://…, NAME[:PORT], or a text with variables that gives one"

func (t *target) allowed() string {
	if t.grpc {
		return grpcPassAllowed
	}
	return proxyPassAllowed
}

// cut takes a text apart that says where to. Of gRPC it has no URI part, and need not have a scheme.
func (t *target) cut(text string) (scheme, authority, part string, ok bool) {
	if !t.grpc {
		return cutURL(text)
	}
	scheme, authority = "http", text
	for prefix, s := range map[string]string{"grpc://": "http", "grpcs://": "https"} {
		if len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
			scheme, authority = s, text[len(prefix):]
		}
	}
	return scheme, authority, "", authority != "" && !strings.ContainsAny(authority, "/?")
}

var nameTE, valueTrailers = []byte("TE"), []byte("trailers")

// takesTrailers tells whether a client takes fields after the body.
func takesTrailers(fields []forward.Field) bool {
	for i := range fields {
		if !sameName(fields[i].Name, "TE") {
			continue
		}
		for item := range strings.SplitSeq(textOf(fields[i].Value), ",") {
			item, _, _ = strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(item), "trailers") {
				return true
			}
		}
	}
	return false
}
