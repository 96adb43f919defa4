package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// A judge decides by a directive's arguments and place what its row in the table can't: a class and the reason. The row's own
// reason stands when it gives none.
type judge func(r *reader, n *topology.Node, in Context) (Class, string)

var judges = map[string]judge{
	"listen":   judgeListen,
	"resolver": judgeResolver, "resolver_timeout": judgeResolverTimeout,

	"dynamic_upstrand": judgeDynamic,

	"http3": unlessOff, "ssl_early_data": unlessOff, "ssl_ocsp": unlessOff,
	"proxy_cache": unlessOff, "proxy_store": unlessOff, "proxy_bind": unlessOff, "proxy_force_ranges": unlessOff,
	"auth_basic": unlessOff, "auth_request": unlessOff, "auth_jwt": unlessOff, "autoindex": unlessOff, "random_index": unlessOff,
	"ssi": unlessOff, "gunzip": unlessOff, "override_charset": unlessOff, "source_charset": unlessOff, "userid": unlessOff, "mirror": unlessOff,
	"client_body_in_file_only": unlessOff, "msie_refresh": unlessOff, "log_subrequest": unlessOff, "brotli": unlessOff, "zstd": unlessOff,
	"brotli_static": unlessOff, "modsecurity": unlessOff, "pagespeed": unlessOff, "opentracing": unlessOff, "otel_trace": unlessOff,

	"limit_rate": unlessZero, "proxy_limit_rate": unlessZero, "slice": unlessZero,
}

// unlessOff refuses a directive that is turned on.
func unlessOff(_ *reader, n *topology.Node, _ Context) (Class, string) {
	if len(n.Args) > 0 && n.Args[0] == "off" {
		return Noticed, "off, as it is without it"
	}
	return Refused, ""
}

// unlessZero refuses a directive with a value.
func unlessZero(_ *reader, n *topology.Node, _ Context) (Class, string) {
	if size, err := topology.ParseSize(n.Args[0]); err == nil && size == 0 {
		return Noticed, "0, as it is without it"
	}
	return Refused, ""
}

// judgeDynamic wants a variable to set. The candidates are looked up at request time.
func judgeDynamic(_ *reader, n *topology.Node, _ Context) (Class, string) {
	if len(n.Args[0]) < 2 || n.Args[0][0] != '$' {
		return Refused, "invalid variable name \"" + clip(n.Args[0]) + "\"; want dynamic_upstrand $VARIABLE CANDIDATE…"
	}
	return Supported, ""
}

// judgeListen refuses what our listeners can't do. Whoever compiles the servers reads the rest.
func judgeListen(_ *reader, n *topology.Node, _ Context) (Class, string) {
	if strings.HasPrefix(n.Args[0], "unix:") {
		return Refused, "unix sockets are not listened on in this version: listen on an address of the loopback"
	}
	for _, arg := range n.Args[1:] {
		switch {
		case arg == "spdy":
			return Refused, "spdy: is gone from nginx too: listen with http2"
		case arg == "quic":
			return Refused, "quic: HTTP/3 is not built: take the line out"
		}
	}
	return Supported, ""
}

// judgeResolver takes the resolver of http, else the one that servers and locations name. One for all is built: where
// the host of a proxy_pass comes from variables, another one would give other answers.
func judgeResolver(r *reader, n *topology.Node, in Context) (Class, string) {
	parsed, reason := topology.ParseResolver(n.Args)
	if reason != "" {
		return Refused, reason
	}
	before := r.resolver
	if before != nil && r.variableHost && !slices.Equal(before.Args, n.Args) {
		return Refused, fmt.Sprintf("another one than in line %d of %s: one resolver for the whole file is built; name it in http", before.Line, before.File)
	}
	if before == nil || in == HTTP {
		r.resolver, r.doc.Resolver = n, &parsed
	}
	return Noticed, ""
}

func judgeResolverTimeout(r *reader, n *topology.Node, in Context) (Class, string) {
	timeout, err := topology.ParseTime(n.Args[0])
	if err != nil {
		return Refused, err.Error()
	}
	if r.resolverTimeout == 0 || in == HTTP {
		r.resolverTimeout = timeout
	}
	return Noticed, ""
}

// hasVariableHost tells whether a proxy_pass below these nodes leads to a host that a variable gives.
func hasVariableHost(nodes []*topology.Node) bool {
	return slices.ContainsFunc(nodes, func(n *topology.Node) bool {
		if n.HasBlock {
			return hasVariableHost(n.Block)
		}
		return n.Name == "proxy_pass" && len(n.Args) == 1 && strings.Contains(hostOf(n.Args[0]), "$")
	})
}

// hostOf is the part of a target between :// and the path; all of it when there is no scheme.
func hostOf(target string) string {
	if _, after, ok := strings.Cut(target, "://"); ok {
		target = after
	}
	host, _, _ := strings.Cut(target, "/")
	return host
}

// isCode knows the third-party directives that run code, of which there are too many to list.
func isCode(name string) bool {
	return strings.Contains(name, "_by_lua") || strings.HasPrefix(name, "lua_") || strings.HasPrefix(name, "passenger_")
}
