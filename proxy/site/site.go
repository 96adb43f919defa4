package site

import (
	"context"
	"crypto/tls"
	"net/netip"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/limit"
)

// Site is the server blocks of one configuration. It is immutable and safe for concurrent use.
type Site struct {
	slots   int      // of script.State
	listens []Listen // in order of appearance
	at      map[netip.AddrPort]*address
	first   *address // of the first listen: for requests that came in elsewhere
	hosts   []string
	hostAt  map[string]*topology.Node // where each was named first

	balancing map[string]*balancingTexts // by upstream
	files     *accesslog.Files
	logs      []*accesslog.Log       // held in files
	held      []interface{ Close() } // certificates
	notices   []topology.Fault

	zones        *limit.Zones
	requestZones []limit.ID // held in zones
	connZones    []limit.ID
}

// Listen is one address that the configuration wants connections from.
type Listen struct {
	Addr      netip.AddrPort // an unspecified address means all of its family
	Backlog   int            // 0: the system's
	ReusePort bool
	V6Only    bool // of an IPv6 address: take no IPv4 connections; nginx's default
	// ProxyProtocol: connections begin with a header that says who the client is; one of the address's listens says so.
	ProxyProtocol bool

	Conns           int  // open at once; 0: no limit
	ConnsPerAddress int  // of one client's address
	TLS             bool // one of the address's listens says ssl
	HTTP2           bool // one says http2, or the default server does: also plain connections may begin with it

	// File and Line are where the first of the address's listens stands, or the server that has none.
	File string
	Line int
}

// Env is what a Site needs of the routing table that a request belongs to. Its methods are safe for concurrent use.
type Env interface {
	// Upstream is the group of a declared upstream or of one of Hosts; nil: there is none of that name.
	Upstream(name string) *Upstream
	// Upstrand is the upstrand of a name in lower case; nil: there is none.
	Upstrand(name string) *Upstrand
	// Opener reaches peers with these limits. It is asked for each request, so it has to be quick: a wire is one pointer for
	// all requests that speak so, and is not changed.
	Opener(w *Wire) forward.Opener
	// Now is the wall time in Unix nanoseconds; it doesn't step back.
	Now() int64
}

// Renewer is an Env that knows when there is a newer one.
type Renewer interface {
	// Renew is the upstream of the same name in the routing table of now; nil: it is still this one, or gone.
	Renew(u *Upstream) *Upstream
	// Newer tells whether there is a newer table, with servers for where a request came in.
	Newer(local netip.AddrPort) bool
}

// Clocked is an Env that lends its clock, so that nobody has to go through Env for it.
type Clocked interface {
	// Clock gives Now.
	Clock() balance.Clock
}

// Upstream is a group with what a request has to know of it.
type Upstream struct {
	Name  string
	Group *balance.Group
	Spec  *topology.Group // as declared; nil for one of Hosts
}

// Wire is how a location speaks to its peers.
type Wire struct {
	Connect time.Duration // to have a connection
	Read    time.Duration // without a byte from the peer
	Send    time.Duration // without the peer taking a byte
	HeadMax int           // bytes of an answer's head

	HTTP2    bool // requests are HTTP/2, in the clear without asking; then the other three say nothing
	HTTP10   bool // requests are HTTP/1.0
	Headless bool // what does not begin as an HTTP answer is one of HTTP/0.9
	NoHost   bool // a request without an authority goes without a Host line

	Scheme     string      // http or https, whatever the peer says
	TLS        *tls.Config // for https
	ServerName string      // said in the handshake; empty: that of TLS
}

// Options are what Compile needs beside the directives. The zero value works.
type Options struct {
	// Upstreams tells whether an upstream of this name is declared; nil: none is.
	Upstreams func(name string) bool
	// Upstrands tells whether there is an upstrand of this name, which is in lower case, or may be one: a published one.
	Upstrands func(name string) bool
	// Lookup resolves the names in listen directives; nil: names are faults.
	Lookup func(host string) ([]netip.Addr, error)
	// ReadFile reads a file that the configuration names, such as an error page or a certificate; nil: regular files
	// of at most 8 MiB.
	ReadFile func(name string) ([]byte, error)
	// Groups are the upstreams as they are declared: their hash keys and sticky variables are texts of the site's requests.
	Groups []*topology.Group
	// Logs holds the access logs over the life of several sites; nil: the site has its own.
	Logs *accesslog.Files
	// Certs holds certificates over the life of several sites; nil: the site has its own.
	Certs *certs.Store
	// Offline: no client makes a handshake, so that no certificate is looked at: in a simulator.
	Offline bool
	// KeepCerts: certificates that Certs holds already stay as they are where their files can't be used any more.
	KeepCerts bool
	// Zones holds the zones of limit_req and limit_conn likewise.
	Zones *limit.Zones
	// Prefix is the folder that relative names of files begin in; empty: /etc/nginx.
	Prefix string
}

// Listens are the addresses to take connections on, each once, in order of appearance.
func (s *Site) Listens() []Listen { return s.listens }

// Hosts are the constant targets of proxy_pass, as host:port, that are no declared upstream: each is an upstream with
// this one server.
func (s *Site) Hosts() []string { return s.hosts }

// HostAt is the directive that named one of Hosts first.
func (s *Site) HostAt(host string) *topology.Node { return s.hostAt[host] }

// Notices are what of the directives has no effect here.
func (s *Site) Notices() []topology.Fault { return s.notices }

// Handle serves one request and has given its answer when it returns, unless it says Again.
func (s *Site) Handle(ctx context.Context, env Env, in *forward.Request, c forward.Client) Served {
	var of Served
	s.Continue(ctx, env, in, c, &of)
	return of
}

// Continue is Handle for a request that another site may have left: of is what that one said of it, and becomes what this one
// says.
func (s *Site) Continue(ctx context.Context, env Env, in *forward.Request, c forward.Client, of *Served) {
	r := takeRequest(s, env, in, c, of.At)
	defer r.release()
	r.span = of.Span
	if of.Again {
		r.continues(of)
	}
	r.serve(ctx)
	if r.up.leaves {
		r.left(of)
		return
	}
	r.end(of)
}

// end tells of a request that has its answer.
func (r *request) end(of *Served) {
	r.ended = r.env.Now()
	if r.conf != nil && len(r.conf.log.logs) > 0 {
		r.log()
	}
	if of.Done != nil {
		of.Done(r.done())
	}
	of.Status, of.Bytes, of.Again, of.At = r.status, r.up.outcome().Bytes, false, r.ended
}
