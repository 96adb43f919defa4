package site

import (
	"fmt"
	"maps"
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/limit"
	"github.com/upstrand/upstrand/proxy/script"
)

// compiler is one run of Compile.
type compiler struct {
	options Options
	script  *script.Compiler[*request]
	site    *Site
	servers []*server
	merge   *bool // merge_slashes of http; nil: not said
	faults  []topology.Fault
	later   []func() // what needs whole blocks; run before the rest of finish
	formats map[string]*logFormat
	zones   limitZones

	dynamics map[string]bool // variables of dynamic_upstrand
}

// Compile makes a Site of the directives that stand in http. It lists every fault; with one there is no Site.
func Compile(nodes []*topology.Node, o Options) (*Site, []topology.Fault) {
	if o.Logs == nil {
		o.Logs = &accesslog.Files{}
	}
	if o.Zones == nil {
		o.Zones = &limit.Zones{}
	}
	if o.Certs == nil {
		o.Certs = &certs.Store{ReadFile: o.ReadFile}
	}
	c := &compiler{options: o, script: script.NewCompiler(knownVariables(o)), site: &Site{files: o.Logs, zones: o.Zones}}
	c.zones = limitZones{map[string]*requestZone{}, map[string]*connZone{}}
	top := &level{compiler: c, kind: inHTTP, set: defaultSettings()}
	c.block(top, nodes)
	c.site.balancing = c.balancingOf(o.Groups)
	c.finish()
	if len(c.faults) > 0 {
		c.site.Close()
		return nil, c.faults
	}
	return c.site, nil
}

// setters are the directives that are read before the blocks beside them, whatever their order.
var setters = merge(coreSetters, serverSetters, mapSetters, ruleSetters, upstrandSetters, proxySetters, grpcSetters, answerSetters, accessSetters, logSetters, clientSetters, limitSetters, tlsSetters)

// merge puts the tables of all parts together.
func merge(tables ...map[string]setter) map[string]setter {
	all := map[string]setter{}
	for _, t := range tables {
		for name, s := range t {
			if all[name] != nil {
				panic("site: two setters for " + name) // by TestEverySetterOnce at the latest
			}
			all[name] = s
		}
	}
	return all
}

// block compiles what stands in a level: first all that has a setter, then, in their order, what makes children of it,
// so that a child inherits the whole of its parent.
func (c *compiler) block(l *level, nodes []*topology.Node) {
	for _, n := range nodes {
		if set := setters[n.Name]; set != nil {
			set(l, n)
		}
	}
	l.settleProxy()
	for _, n := range nodes {
		switch {
		case setters[n.Name] != nil:
		case n.Name == "server" && l.kind == inHTTP:
			c.serverBlock(l, n)
		case n.Name == "location" && (l.kind == inServer || l.kind == inLocation):
			c.locationBlock(l, n)
		case n.Name == "limit_except" && l.kind == inLocation:
			c.limitExcept(l, n)
		case rewriting[n.Name] != nil && l.kind != inHTTP:
			rewriting[n.Name](l, n)
		case slices.Contains(blocks, n.Name) || rewriting[n.Name] != nil:
			c.problem(n, "can't stand here", "in its own context")
		default:
			c.problem(n, "is not known here", "")
		}
	}
}

var blocks = []string{"server", "location", "limit_except"}

// child is a level inside l with settings that begin as its.
func (l *level) child(kind kind, n *topology.Node) *level {
	set := *l.set
	return &level{compiler: l.compiler, kind: kind, parent: l, node: n, set: &set, server: l.server, location: l.location, code: l.code}
}

// finish checks what could only be known at the end.
func (c *compiler) finish() {
	for _, f := range c.later {
		f()
	}
	for _, u := range c.script.Finish() {
		reason, allowed := u.Reason, ""
		switch {
		case u.Near != "":
			reason += "; did you mean $" + u.Near + "?"
		case u.Undefined:
			allowed = "those of the reference, and what map, geo, split_clients, set or a named capture of this configuration defines"
		}
		n, ok := u.At.(*topology.Node)
		if !ok {
			n = &topology.Node{}
		}
		f := n.Fault(reason, allowed)
		f.NotBuilt = u.NotBuilt
		c.faults = append(c.faults, f)
	}
	c.site.slots = c.script.Slots()
	c.addresses()
}

// Directives are the names that Compile knows, sorted.
func Directives() []string {
	names := slices.Collect(maps.Keys(setters))
	names = append(names, slices.Collect(maps.Keys(rewriting))...)
	return slices.Sorted(slices.Values(append(names, blocks...)))
}

// quote is a text as faults name it.
func quote(s string) string { return fmt.Sprintf("%q", s) }
