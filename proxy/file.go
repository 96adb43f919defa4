package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/site"
)

// File is a configuration file as package dialect reads it.
type File struct {
	Name     string
	Config   *topology.Config   // its upstreams and upstrands
	Site     []*topology.Node   // the rest of http, in order
	Resolver *topology.Resolver // of http; nil: none
	// Published: a topology is published beside the file, so that a name which the file lacks may come with it. Without,
	// it must be the name of a host.
	Published bool
	// Fault places a problem of the Config in the file, or says that it is of something that was dropped; nil: problems
	// have no place.
	Fault func(topology.Problem) (topology.Fault, bool)
}

// Compiled is a File that can be put in force.
type Compiled struct {
	file     *File
	expander *topology.Expander
	config   *topology.Config // the file's, and an upstream for each host that a proxy_pass names
	site     *site.Site
	asks     asks // what site was compiled with
}

// Site is the server blocks of the file.
func (c *Compiled) Site() *site.Site { return c.site }

// Notices are what of the server blocks has no effect here.
func (c *Compiled) Notices() []topology.Fault { return c.site.Notices() }

// Name is the file's.
func (c *Compiled) Name() string { return c.file.Name }

// Faults is everything that is wrong with a file.
type Faults []topology.Fault

// Error has one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Compile makes ready what a file says, and asks the name servers for the hosts that it names. It changes nothing that is
// in force. The error is a Faults with all that is wrong. What is not used afterwards must be closed.
func (p *Proxy) Compile(f *File) (*Compiled, error) {
	if f == nil || f.Config == nil {
		return nil, errNoConfig
	}
	if p.book != nil {
		p.book.Forget()
	}
	c := &Compiled{file: f, expander: p.fileExpander(f), config: f.Config}
	var now *topology.Topology
	if t := p.table.Load(); t != nil && f.Published {
		now = t.topology
	}
	expanded, problems := c.expand(now)
	faults := f.faults(problems)
	if err := p.compileSite(c, expanded, asks{}); err != nil {
		return nil, append(faults, err...)
	}
	if len(faults) > 0 {
		c.site.Close()
		return nil, faults
	}
	if err := c.addHosts(p); err != nil {
		c.site.Close()
		return nil, err
	}
	return c, nil
}

// compileSite makes the site for the groups of the file and those that were published.
func (p *Proxy) compileSite(c *Compiled, x *topology.Expanded, published asks) Faults {
	options := site.Options{Lookup: p.names.Lookup, Logs: p.config.Logs, Zones: &p.limits.zones, Certs: &p.tls.files, KeepCerts: c.site != nil, Offline: p.config.Opener != nil,
		Groups: append(slices.Clone(x.Upstreams), published.groups...)}
	if c.file.Name != "" {
		options.Prefix = filepath.Dir(c.file.Name) // as include reads names
	}
	options.Upstreams, options.Upstrands = known(x)
	if c.file.Published { // it may come with a topology
		options.Upstrands = func(string) bool { return true }
	}
	made, faults := site.Compile(c.file.Site, options)
	if len(faults) > 0 {
		return faults
	}
	c.site, c.asks = made, published
	return nil
}

// asks is the published groups about which a request has to be asked something: the key of a hash, a session. A site
// holds what it takes to answer, so that it is made anew when they change.
type asks struct{ groups []*topology.Group }

func asksOf(x *topology.Expanded) (a asks) {
	for _, g := range x.Upstreams {
		if g.Method.Key != "" || g.Sticky != nil {
			a.groups = append(a.groups, g)
		}
	}
	return a
}

func (a asks) equal(b asks) bool {
	return slices.EqualFunc(a.groups, b.groups, func(a, b *topology.Group) bool {
		return a.Name == b.Name && a.Method == b.Method && reflect.DeepEqual(a.Sticky, b.Sticky)
	})
}

func (p *Proxy) fileExpander(f *File) *topology.Expander {
	return topology.NewExpander(topology.ExpandOptions{
		Zone: p.config.Zone, Strict: true, Resolver: f.Resolver, Lookup: p.names.Lookup, Query: p.names.Query,
	})
}

// known tells which names a file declares; names have no case.
func known(x *topology.Expanded) (upstreams, upstrands func(string) bool) {
	groups, strands := map[string]bool{}, map[string]bool{}
	for _, g := range x.Upstreams {
		groups[strings.ToLower(g.Name)] = true
	}
	for _, s := range x.Upstrands {
		strands[strings.ToLower(s.Name)] = true
	}
	return func(name string) bool { return groups[strings.ToLower(name)] }, func(name string) bool { return strands[strings.ToLower(name)] }
}

// faults is the problems that keep a file from being used, at their places.
func (f *File) faults(problems []topology.Problem) (faults Faults) {
	for _, problem := range problems {
		if fault, ok := f.fault(problem); ok && !problem.Warning {
			faults = append(faults, fault)
		}
	}
	return faults
}

func (f *File) fault(problem topology.Problem) (topology.Fault, bool) {
	if f.Fault != nil && problem.Upstream < len(f.Config.Upstreams) { // those behind are our own
		return f.Fault(problem)
	}
	return topology.Fault{File: f.Name, Reason: problem.Error()}, true
}

// addHosts makes an upstream of each host that a proxy_pass names, as nginx does. Where a topology is published beside
// the file the host may be one of its upstreams, so that a name without address is no fault yet.
func (c *Compiled) addHosts(p *Proxy) error {
	config := *c.file.Config
	var faults Faults
	for _, host := range c.site.Hosts() {
		if err := p.resolves(host); err != nil {
			if !c.file.Published {
				faults = append(faults, c.hostFault(host, fmt.Sprintf("host not found in upstream %q: %v", nameOf(host), err)))
			}
			continue
		}
		config.Upstreams = append(config.Upstreams[:len(config.Upstreams):len(config.Upstreams)], topology.Upstream{
			Name: host, Origin: topology.Declared, Rank: len(config.Upstreams), Directives: []topology.Directive{{"server", host}},
		})
	}
	c.config = &config
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// hostFault is about a host that a proxy_pass names.
func (c *Compiled) hostFault(host, reason string) topology.Fault {
	n := c.site.HostAt(host)
	return topology.Fault{File: n.File, Line: n.Line, Name: n.Name, Reason: reason, Allowed: "a declared upstream, an IP address, or a name that has one"}
}

func nameOf(host string) string {
	name, _, _ := net.SplitHostPort(host)
	return name
}

// hostNotices is about names that may be mistyped upstreams as well as hosts.
func (c *Compiled) hostNotices() (notices []topology.Fault) {
	for _, host := range c.site.Hosts() {
		name := nameOf(host)
		if _, err := netip.ParseAddr(name); err == nil || strings.Contains(name, ".") || name == "localhost" || c.file.Published {
			continue
		}
		notices = append(notices, c.hostFault(host, name+" is no upstream of this file: it is looked up as a host when the file is served"))
	}
	return notices
}

// expand is the groups of the file with the instances of a topology, which may be nil.
func (c *Compiled) expand(t *topology.Topology) (*topology.Expanded, []topology.Problem) {
	config := *c.config
	if t != nil {
		config.Services = t.Config.Services
	}
	return c.expander.Expand(&config)
}

// Load is Compile and Use.
func (p *Proxy) Load(f *File) error {
	c, err := p.Compile(f)
	if err != nil {
		return err
	}
	if err := p.Use(c); err != nil {
		c.Close()
		return err
	}
	return nil
}

// Use puts a compiled file in force, beside the topology if there is one. All that can fail comes before the first live
// change. State of peers that stay is kept. On an error the file is still the caller's to close.
func (p *Proxy) Use(c *Compiled) error {
	p.applying.Lock()
	defer p.applying.Unlock()
	var published *topology.Topology
	if t := p.table.Load(); t != nil {
		published = t.topology
	}
	return p.put(published, c)
}

// Listens is where the file in force listens, in its order; none without a file.
func (p *Proxy) Listens() []site.Listen {
	if t := p.table.Load(); t != nil && t.site != nil {
		return t.site.Listens()
	}
	return nil
}

// Renew builds the table anew with the addresses that names have now.
func (p *Proxy) Renew() error {
	p.applying.Lock()
	defer p.applying.Unlock()
	t := p.table.Load()
	if t == nil {
		return nil
	}
	return p.put(t.topology, t.file)
}

var errNothing = errors.New("proxy: neither a topology nor a file")

// Check looks at a file as Compile does and puts nothing in force. It gives what it would only warn of.
func (p *Proxy) Check(f *File) (warnings []topology.Fault, err error) {
	c, err := p.Compile(f)
	if err != nil {
		return nil, err
	}
	defer c.site.Close()
	_, problems := c.expand(nil)
	for _, problem := range problems {
		if fault, ok := f.fault(problem); ok && problem.Warning {
			warnings = append(warnings, fault)
		}
	}
	return append(append(warnings, c.hostNotices()...), c.Notices()...), nil
}

// Close gives back what a file holds that was compiled and is not used.
func (c *Compiled) Close() { c.site.Close() }

// ReopenLogs opens the access logs anew, after somebody moved their files away.
func (p *Proxy) ReopenLogs() {
	p.log.Info().Int("files", p.config.Logs.Reopen()).Msg("log files are opened anew")
}
