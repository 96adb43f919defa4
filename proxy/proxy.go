package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
	"github.com/upstrand/upstrand/proxy/http1"
	"github.com/upstrand/upstrand/proxy/http2"
	"github.com/upstrand/upstrand/proxy/names"
	"github.com/upstrand/upstrand/proxy/site"
)

// Config is a proxy's settings. The zero value works.
type Config struct {
	Zone           string         // where this proxy stands; it prefers instances there. Empty: it has none
	Engine         front.Settings // limits of the wire towards clients
	Peers          http1.Settings // and towards peers, of routes that were published
	PeerTLS        *tls.Config    // for instances of scheme https; nil: verified by the host's roots
	Policy         forward.Policy // zero: forward.DerivedPolicy
	RetryShare     float64        // part of the requests of 10 s that may be retried (0.2); negative: no limit
	RetryAtOnce    int            // retries that may always run at the same time (3)
	RetryWait      time.Duration  // a retry beyond both waits so long for its turn (500 ms)
	PeerOwn        certs.Pair     // with PeerTLS: what is shown to instances that ask, looked at while the proxy runs, in place of its Certificates
	TLS            certs.Settings // of doors with TLS, without a file; no Pairs: there are none
	RetryAfter     time.Duration  // told to clients of a service without instances (5 s)
	KeepBody       int64          // bytes of a request's body that are held, beyond memory in a file, to be sent along an upstrand (64 MiB)
	TrustedProxies []netip.Prefix // clients whose X-Forwarded fields are believed
	Forwarded      bool           // published routes tell backends who asks by RFC 7239 too
	Via            string         // name of this proxy in Via; empty: none is written. A request that has it already is refused: it goes in a circle
	AccessLog      AccessLog
	Tracer         Tracer // follows requests; nil: nobody does
	Logger         zerolog.Logger
	Registerer     prometheus.Registerer // nil: metrics are kept, not exposed

	// Logs is where a file's access_log lines go; nil: files of its own.
	Logs *accesslog.Files

	// What follows lets a proxy run in a world of its own, such as a simulator's. Nil: the real one.
	Clock  balance.Clock                           // balance.SystemClock
	Rand   func() uint64                           // balance.Env's
	Watch  func(*balance.Explanation)              // balance.Env's: is told of every pick
	Opener func(site.Wire) forward.Opener          // connections of its own
	Lookup func(host string) ([]netip.Addr, error) // the network's name servers
}

func (c Config) withDefaults() Config {
	if c.Policy == (forward.Policy{}) {
		c.Policy = forward.DerivedPolicy()
	}
	if c.RetryShare == 0 {
		c.RetryShare = 0.2
	}
	if c.RetryAtOnce <= 0 {
		c.RetryAtOnce = 3
	}
	if c.RetryWait <= 0 {
		c.RetryWait = 500 * time.Millisecond
	}
	if c.RetryAfter <= 0 {
		c.RetryAfter = 5 * time.Second
	}
	if c.KeepBody <= 0 {
		c.KeepBody = 64 << 20
	}
	if c.Clock == nil {
		c.Clock = balance.SystemClock()
	}
	return c
}

// Proxy serves requests by the topology that was applied last.
type Proxy struct {
	config    Config
	clock     balance.Clock
	log       zerolog.Logger
	metrics   *metrics
	pools     *http1.Pools
	peers2    *http2.Pools // to peers that are spoken to over HTTP/2
	names     addresses
	book      *names.Book // names of the network; nil: Config.Lookup gives all
	servers   servers
	table     atomic.Pointer[table]
	leaving   atomic.Bool
	former    former
	openers   openers
	recorders recorders
	hosts     hosts
	tls       *clientTLS
	limits    *limits
	failures  *quietLog
	refusals  *quietLog
	lines     *lineLog // nil: there is no access log but those of a file
	done      func(site.Finished)

	applying sync.Mutex // serialises Apply, Use and Renew; guards what follows
	expander *topology.Expander
	services services
	closed   bool
}

var (
	errShutDown   = errors.New("the proxy shuts down")
	errNoTopology = errors.New("no topology yet")
)

// New makes a proxy. It listens when Serve is called and has nothing to serve before the first Apply.
func New(c Config) (*Proxy, error) {
	c = c.withDefaults()
	if c.RetryShare > 1 {
		return nil, fmt.Errorf("proxy: retry share %v: want at most 1", c.RetryShare)
	}
	p := &Proxy{config: c, clock: c.Clock, log: c.Logger, failures: newQuietLog(c.Logger), refusals: newQuietLog(c.Logger)}
	var err error
	if p.tls, err = newClientTLS(p, c.TLS); err != nil {
		return nil, err
	}
	peers, err := p.tls.towardsPeers(c.PeerTLS, c.PeerOwn)
	if err != nil {
		return nil, err
	}
	p.pools = http1.NewPools(c.Peers, peers)
	p.peers2 = http2.NewPools(peerSettings(c.Peers), peers)
	if c.Lookup == nil {
		p.book = names.NewBook(nil, c.Logger)
		p.names = p.book
	} else {
		p.names = asked{c.Lookup}
	}
	if c.Logs == nil {
		p.config.Logs = &accesslog.Files{}
	}
	p.expander = topology.NewExpander(topology.ExpandOptions{Zone: c.Zone, Lookup: p.names.Lookup, Query: p.names.Query})
	if p.metrics, err = newMetrics(c.Registerer, p.age); err != nil {
		return nil, fmt.Errorf("proxy: metrics: %w", err)
	}
	if c.Registerer != nil {
		for _, of := range []prometheus.Collector{newTimingMetrics(p), newStrandMetrics(p), newFlowMetrics(p)} {
			if err := c.Registerer.Register(of); err != nil {
				return nil, fmt.Errorf("proxy: metrics: %w", err)
			}
		}
	}
	if p.limits, err = newLimits(p.log, c.Registerer); err != nil {
		return nil, fmt.Errorf("proxy: metrics: %w", err)
	}
	if p.lines, err = newLineLog(p.config.Logs, c.AccessLog); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.done = p.finishSite
	p.services.make = p.newService
	p.servers.begin(p)
	p.hosts = hosts{proxy: p, all: map[string]*host{}}
	p.hosts.ctx, p.hosts.end = context.WithCancel(context.Background())
	return p, nil
}

func (p *Proxy) newService(name string) *service {
	s := &service{name: name, since: time.Now(), all: p.metrics}
	if p.config.RetryShare > 0 {
		s.budget = forward.NewBudget(p.clock, p.config.RetryShare, p.config.RetryAtOnce, p.config.RetryWait)
	}
	return s
}

// age is the seconds since the topology in force was committed.
func (p *Proxy) age() float64 {
	t := p.table.Load()
	if t == nil || t.topology == nil {
		return -1
	}
	return time.Since(t.topology.At).Seconds()
}

// Serve takes connections from l until Shutdown, then returns nil. It may run for several listeners at once.
func (p *Proxy) Serve(l net.Listener) error {
	return p.serve(l, p.config.Engine)
}

func (p *Proxy) serve(l net.Listener, limits front.Settings) error {
	if err := p.servers.of(limits).Serve(l); err != nil {
		return fmt.Errorf("proxy: serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Run keeps the names of servers that are resolved at run time, and certificates whose files change, up to date, until ctx
// ends. A proxy without such names and certificates needs no Run.
func (p *Proxy) Run(ctx context.Context) error {
	var looking sync.WaitGroup
	looking.Go(func() { p.tls.files.Run(ctx) })
	defer looking.Wait()
	if p.book == nil {
		<-ctx.Done()
		return nil
	}
	p.book.Run(ctx, func() {
		if err := p.Renew(); err != nil && !errors.Is(err, errShutDown) {
			p.log.Error().Err(err).Msg("new addresses of servers can't be put in force")
		}
	})
	return nil
}

// Ready is nil when the proxy has something to serve by and is not shutting down.
func (p *Proxy) Ready() error {
	if p.leaving.Load() {
		return errShutDown
	}
	if p.table.Load() == nil {
		return errNoTopology
	}
	return nil
}

// Leave makes Ready fail from now on, and each answer the last one on its connection, so that whoever sends traffic here
// can go elsewhere before Shutdown closes the doors. Nothing is refused.
func (p *Proxy) Leave() {
	p.leaving.Store(true)
	p.servers.leave()
}

// Clients is the number of connections of clients that are open.
func (p *Proxy) Clients() int64 { return p.servers.stats().Active }

// Shutdown is not ready from now on, accepts nothing more, and lets requests and tunnels end until ctx does; what is
// left then is cut and reported as ctx's error. It closes all connections to peers. The proxy can't be used again.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.Leave()
	err := p.endClients(ctx)
	p.applying.Lock()
	if t := p.table.Load(); t != nil && t.users != nil && !p.closed {
		t.users.leave()
	}
	p.closed = true
	p.applying.Unlock()
	p.recorders.close()
	p.hosts.end()
	p.pools.Close()
	p.peers2.Close()
	p.lines.close(p.config.Logs)
	if err != nil {
		return fmt.Errorf("proxy: shutdown: %w", err)
	}
	return nil
}

// farewellTime is how much longer than the rest tunnels have that end in good order (1 s at most) when they are asked to.
const farewellTime = 1500 * time.Millisecond

// endClients lets requests and tunnels end until ctx does. Then tunnels are asked to, and what is left is cut.
func (p *Proxy) endClients(ctx context.Context) error {
	bounded, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		if p.pools.Farewell() {
			select {
			case <-time.After(farewellTime):
			case <-bounded.Done(): // all have ended
			}
		}
		cut()
	})
	err := p.servers.shutdown(bounded)
	if stop() {
		return err
	}
	cut()
	<-over
	return ctx.Err()
}

// netLog takes net/http's complaints about single connections: of interest to whoever looks for something, no more.
type netLog struct{ log zerolog.Logger }

func (n netLog) Write(b []byte) (int, error) {
	n.log.Debug().Msg(strings.TrimSpace(string(b)))
	return len(b), nil
}
