package declared

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// elsewhere ends the reason of what a declared topology can't carry.
const elsewhere = "; server blocks with more than routes belong into the FILE of upstrand proxy --conf"

const (
	wantLocation = "location /PATH { proxy_pass http://NAME; }"
	wantTarget   = "proxy_pass http://UPSTREAM; or proxy_pass http://$upstrand_NAME;"
	wantHost     = "a whole name such as shop.example.org; no server_name, or _, for any"

	maxPath = 1024
	maxHost = 253
)

// MaxRoutes is how many routes all files may declare together. Each name of a server block makes one with each of its
// locations, so that without a limit one file of a megabyte could say billions.
const MaxRoutes = 10_000

// server takes the routes out of a server block: each of its names with each of its locations.
func (r *reader) server(n *topology.Node) {
	hosts, named := []string{}, false
	for _, line := range n.Block {
		if line.Name != "server_name" {
			continue
		}
		named = true
		for _, arg := range line.Args {
			host, reason := hostOf(arg)
			if reason != "" {
				r.fault(line, "\""+clip(arg)+"\" "+reason, wantHost)
				continue
			}
			hosts = append(hosts, host)
		}
	}
	if !named {
		hosts = append(hosts, "")
	}
	locations := 0
	for _, line := range n.Block {
		switch line.Name {
		case "server_name":
		case "location":
			locations++
			r.location(line, hosts)
		case "listen":
			r.fault(line, "can't be declared: where proxies listen is a setting of theirs"+elsewhere, "server_name, location")
		default:
			r.fault(line, "can't be declared: a route has a host, a path and a target"+elsewhere, "server_name, location")
		}
	}
	if locations == 0 {
		r.fault(n, "has no route", wantLocation)
	}
}

// hostOf is the host as routes have it, "" for any; or what is wrong with it.
func hostOf(name string) (host, reason string) {
	if name == "_" {
		return "", ""
	}
	host = strings.ToLower(strings.TrimSuffix(name, "."))
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a.String(), ""
	}
	switch {
	case strings.HasPrefix(host, "~"):
		return "", "is a regex, and routes match whole names" + elsewhere
	case strings.Contains(host, "*") || strings.HasPrefix(host, "."):
		return "", "is a wildcard, and routes match whole names" + elsewhere
	case host == "" || len(host) > maxHost || strings.IndexFunc(host, notOfHost) >= 0:
		return "", "is no name of a host"
	}
	return host, ""
}

// notOfHost leaves out what no Host field has, and ports.
func notOfHost(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' && c < 0x80
}

func (r *reader) location(n *topology.Node, hosts []string) {
	path, reason := pathOf(n.Args)
	if reason != "" {
		r.fault(n, reason, wantLocation)
		return
	}
	route := topology.Route{Path: path, Origin: topology.Declared}
	targets := 0
	for _, line := range n.Block {
		if line.Name != "proxy_pass" {
			r.fault(line, "can't be declared: a route has a host, a path and a target"+elsewhere, wantTarget)
			continue
		}
		if targets++; targets > 1 {
			r.fault(line, "is duplicate", "one target")
			continue
		}
		if reason := target(line.Args[0], &route); reason != "" {
			r.fault(line, "\""+clip(line.Args[0])+"\" "+reason, wantTarget)
			targets++ // told
		}
	}
	if targets == 0 {
		r.fault(n, "has no target", wantTarget)
	}
	if targets == 1 {
		r.route(n, route, hosts)
	}
}

// pathOf is the path of a location as routes have it: without slash at its end, which makes no difference to them.
func pathOf(args []string) (path, reason string) {
	if len(args) != 1 || !strings.HasPrefix(args[0], "/") {
		return "", "a route takes a path and all below it, no other kind of location" + elsewhere
	}
	path = strings.TrimSuffix(args[0], "/")
	switch {
	case len(args[0]) > maxPath:
		return "", fmt.Sprintf("the path has more than %d bytes", maxPath)
	case strings.Contains(args[0], "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../"):
		return "", "the path has // or dots in it, which are resolved before a request is matched: it would match none"
	case strings.IndexFunc(path, func(c rune) bool { return c < ' ' || c == 0x7f }) >= 0:
		return "", "the path has a control character"
	case path == "":
		return "/", ""
	}
	return path, ""
}

// target reads http://NAME into the route. The result is what is wrong with it.
func target(text string, route *topology.Route) string {
	name, ok := strings.CutPrefix(text, "http://")
	switch {
	case strings.HasPrefix(text, "https://"):
		return "names a scheme, and that is each server's own: its service says it"
	case !ok || name == "":
		return "is no target"
	case strings.Contains(name, "/"):
		return "has a URI part, and routes leave the URI as it is" + elsewhere
	}
	strand, isStrand := strandOf(name)
	switch {
	case isStrand:
		route.Upstrand = strand
	case strings.Contains(name, "$"):
		return "has a variable" + elsewhere
	default:
		route.Upstream = name
	}
	return ""
}

// strandOf is the NAME of $upstrand_NAME or ${upstrand_NAME}.
func strandOf(text string) (name string, ok bool) {
	if inner, braced := strings.CutPrefix(text, "${"); braced {
		if inner, braced = strings.CutSuffix(inner, "}"); !braced {
			return "", false
		}
		text = "$" + inner
	}
	name, ok = strings.CutPrefix(text, "$upstrand_")
	return name, ok && name != "" && !strings.ContainsAny(name, "${}")
}

// route puts the location into the Config, once for each host.
func (r *reader) route(n *topology.Node, route topology.Route, hosts []string) {
	for _, host := range hosts {
		if r.routes++; r.routes > MaxRoutes {
			if r.routes == MaxRoutes+1 {
				r.fault(n, "is one route too many: each server_name counts with each location", fmt.Sprintf("%d routes in all files", MaxRoutes))
			}
			return
		}
		route.Host = host
		key := topology.RouteKey(host, route.Path)
		if first := r.set.routes[key]; first != nil {
			r.fault(n, fmt.Sprintf("route %s is declared at %s:%d already", host+route.Path, first.File, first.Line), "")
			continue
		}
		r.set.routes[key] = n
		r.set.Config.Routes = append(r.set.Config.Routes, route)
	}
}

// clip keeps a word that goes into an error short.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
