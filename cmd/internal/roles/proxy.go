package roles

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/cmd/internal/kafkaconn"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/cmd/internal/tlsconf"
	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/agent"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/front"
	"github.com/upstrand/upstrand/proxy/http1"
)

// AgentService is the service that proxies beat as.
const AgentService = "upstrand-proxy"

// Proxy is the settings of the role that forwards requests.
type Proxy struct {
	Listen       string
	Conf         string // configuration file; empty: what was published is served
	Watch        bool   // read it again when it changes
	Zone         string
	ID           string
	Advertise    string
	StateDir     string
	TopicWait    time.Duration
	BeatInterval time.Duration
	DrainWait    time.Duration
	DrainTimeout time.Duration
	Trusted      []string
	AccessLog    accessLog
	Clients      clients
	Traces       traces
	TLS          clientTLS
	PeerTLS      tlsconf.Files
	Engine       front.Settings // what is 0 has the engine's default
	Peers        http1.Settings // likewise
}

// Flags declares the settings in their groups.
func (x *Proxy) Flags(set *settings.Set) {
	g := set.Group("Proxy")
	g.Listen(&x.Listen, "listen", ":8080", false, "address for traffic; with --conf the file's listen lines say it")
	g.File(&x.Conf, "conf", "configuration file in nginx's syntax, which is served as it stands; with --kafka-brokers it may name published upstreams", x.readable(set))
	g.Bool(&x.Watch, "watch", false, "read the file of --conf again when it, or one that it includes, changes; SIGHUP does it too")
	g.Match(&x.Zone, "zone", "", "zone of this proxy: instances there are preferred; absent: all zones are alike",
		"1 to 64 of A-Z a-z 0-9 . _ -", validZone)
	g.Dir(&x.StateDir, "state-dir",
		"folder for the last good topology, which is served when the proxy starts while Kafka is away; absent: none is kept")
	g.Duration(&x.TopicWait, "topic-wait", 3*time.Second, 10*time.Millisecond, 10*time.Minute,
		"how long a start waits for the topic before it serves what is in the state folder")
	g.Duration(&x.DrainWait, "drain-wait", 0, 0, 10*time.Minute,
		"at the end, how long to be not ready and still serve, for whoever balances over proxies to notice")
	g.Duration(&x.DrainTimeout, "drain-timeout", 20*time.Second, 0, time.Hour, "at the end, how long open requests may take")
	g.Words(&x.Trusted, "trusted-proxies", "networks (CIDR) of clients whose X-Forwarded-…, Forwarded and X-Real-IP fields are believed; absent: none")
	x.Clients.flags(set)
	x.AccessLog.flags(set)
	x.Traces.flags(set)
	x.timeFlags(set)
	x.TLS.flags(set)
	x.PeerTLS.Flags(set, set.Group("TLS to instances of scheme https"), "peer-tls", "the instance")
	x.beatFlags(set)
	set.Check(func() settings.Problems {
		if _, err := x.trusted(); err != nil {
			return settings.Problems{{Flag: "trusted-proxies", Value: strings.Join(x.Trusted, ","), Allowed: err.Error()}}
		}
		return nil
	})
	set.Check(func() settings.Problems {
		switch {
		case x.Conf != "" && set.Given("listen"):
			return settings.Problems{{Flag: "listen", Value: x.Listen, Allowed: "not with --conf: the listen lines of the file say where traffic comes in"}}
		case x.Conf == "" && x.Watch:
			return settings.Problems{{Flag: "watch", Value: "true", Allowed: "only with --conf: there is no file to watch"}}
		}
		return nil
	})
}

// readable looks at a configuration file, names of hosts aside: those are for the start.
func (x *Proxy) readable(set *settings.Set) func(string) error {
	return func(path string) error {
		return conffile.Usable(path, set.Given("kafka-brokers"))
	}
}

// timeFlags declares the limits of the wire, each under the name that nginx has for it where it has one.
func (x *Proxy) timeFlags(set *settings.Set) {
	const least, most = 10 * time.Millisecond, 24 * time.Hour
	g := set.Group("Timeouts towards instances")
	g.Duration(&x.Peers.Connect, "proxy-connect-timeout", 2*time.Second, least, most, "to have a connection; then the next instance is tried")
	g.Duration(&x.Peers.Read, "proxy-read-timeout", time.Minute, least, most,
		"longest silence of an instance, before its answer and within it; before it the client gets 504")
	g.Duration(&x.Peers.Send, "proxy-send-timeout", time.Minute, least, most, "longest time without the instance taking a byte of the request")
	g.Duration(&x.Engine.TunnelIdle, "tunnel-idle-timeout", time.Hour, least, most,
		"longest silence in both directions of a connection that was upgraded, such as a web socket")
	g.Duration(&x.Peers.Idle, "upstream-keepalive-timeout", time.Minute, least, most, "how long an unused connection to an instance is kept")
	g.Int(&x.Peers.IdleMax, "upstream-keepalive", 64, 1, 10_000, "most unused connections that are kept for each instance")
	g.Duration(&x.Peers.Drain, "peer-drain-timeout", 30*time.Second, least, most,
		"how long an instance that left may end the answers and tunnels that it has begun")
	g = set.Group("Timeouts towards clients")
	g.Duration(&x.Engine.ClientHeader, "client-header-timeout", time.Minute, least, most, "for a client to send the whole head of a request")
	g.Duration(&x.Engine.ClientBody, "client-body-timeout", time.Minute, least, most, "longest time without a byte of a request's body")
	g.Duration(&x.Engine.ClientSend, "client-send-timeout", time.Minute, least, most, "longest time without the client taking a byte of the answer")
	g.Duration(&x.Engine.ClientIdle, "client-idle-timeout", 75*time.Second, least, most, "how long an unused connection of a client is kept")
}

func (x *Proxy) beatFlags(set *settings.Set) {
	g := set.Group("Own beats")
	g.Match(&x.ID, "id", "", "name of this proxy among the agents, the same over restarts; absent: host name and port",
		"1 to 64 of A-Z a-z 0-9 . _ : -", func(s string) bool { return s != "" && s == agentID(s) })
	g.Match(&x.Advertise, "advertise", "", "ip:port at which others reach this proxy, as the registry shows it; absent: found out",
		"ip:port", func(s string) bool { _, err := netip.ParseAddrPort(s); return err == nil })
	g.Duration(&x.BeatInterval, "beat-interval", 10*time.Second, 100*time.Millisecond, 5*time.Minute,
		"how often the proxy tells the registry which topology it serves")
}

func validZone(s string) bool { return s == agentID(s) && !strings.Contains(s, ":") }

// trusted reads --trusted-proxies. A plain address is a network of one.
func (x *Proxy) trusted() (list []netip.Prefix, err error) {
	for _, text := range x.Trusted {
		if addr, err := netip.ParseAddr(text); err == nil {
			list = append(list, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, errors.New("allowed: networks such as 10.0.0.0/8 or addresses, separated by commas")
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}

// Join adds the role to the process and returns the address that it takes traffic on, the first one of a file. It starts
// whether Kafka is there or not: without it, it serves what its state folder holds. A nil conn means that no topology is
// followed: then Conf must be given.
func (x *Proxy) Join(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn) (addr string, err error) {
	px, err := x.proxy(p)
	if err != nil {
		return "", err
	}
	in, err := x.entrance(p, px, conn != nil)
	if err != nil {
		return "", err
	}
	if x.ID == "" {
		x.ID = defaultID(in.bound.Port)
	}
	var report func() map[string]string
	if conn == nil {
		p.Ready.Set("proxy", px.Ready)
	} else {
		follower, err := x.agent(p, k, conn, px)
		if err != nil {
			in.close()
			return "", err
		}
		p.Ready.Set("proxy", func() error {
			if err := follower.Ready(); err != nil {
				return err
			}
			return px.Ready()
		})
		report = follower.Report
		p.keepState(follower)
		p.Group.Add("agent", follower.Run)
		p.Group.Add("own beats", func(ctx context.Context) error { return x.beat(ctx, p, k, conn, in.bound, follower) })
	}
	pages := px.Admin(report, in.state)
	for _, page := range []string{"/debug/topology", "/debug/upstreams", "/debug/upstrands", "/debug/upstrands/reset", "/debug/picks"} {
		p.Mux.Handle(page, pages)
	}
	p.Group.Add("names", px.Run)
	p.Group.Add("proxy", func(ctx context.Context) error { return x.serve(ctx, p, px, in) })
	return in.bound.String(), nil
}

func (x *Proxy) proxy(p *Process) (*proxy.Proxy, error) {
	trusted, err := x.trusted()
	if err != nil {
		return nil, err
	}
	conf := proxy.Config{
		Zone: x.Zone, Engine: x.Engine, Peers: x.Peers, TrustedProxies: trusted, Logger: p.Log.With().Str("role", "proxy").Logger(), Registerer: p.Metrics, AccessLog: x.AccessLog.log(),
		TLS: x.TLS.settings(), PeerOwn: certs.Pair{Cert: x.PeerTLS.Cert, Key: x.PeerTLS.Key},
	}
	conf.Forwarded, conf.Via = x.Clients.Forwarded, x.Clients.Via
	if conf.Tracer, err = x.Traces.open(p); err != nil {
		return nil, err
	}
	if x.PeerTLS.Given() {
		if conf.PeerTLS, err = x.PeerTLS.Load(); err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	return proxy.New(conf)
}

func (x *Proxy) agent(p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, px *proxy.Proxy) (*agent.Agent, error) {
	file := ""
	if x.StateDir != "" {
		if err := os.MkdirAll(x.StateDir, 0o755); err != nil {
			return nil, fmt.Errorf("proxy: make the folder of --state-dir: %w", err)
		}
		file = filepath.Join(x.StateDir, "topology-"+x.ID)
	}
	return agent.New(agent.Config{
		Brokers: conn.Brokers, Dialer: conn.Dialer, Transport: conn.Transport, Topic: k.TopicUpstreamConf, Applier: px, Blacklisted: px.Blacklisted,
		StateFile: file, TopicWait: x.TopicWait, Logger: p.Log.With().Str("role", "agent").Logger(), Registerer: p.Metrics,
	})
}

// serve takes traffic until ctx ends. Then the proxy is not ready any more, waits until others may have noticed, closes
// its doors and lets open requests end.
func (x *Proxy) serve(ctx context.Context, p *Process, px *proxy.Proxy, in *entrance) error {
	defer in.left()
	defer x.Traces.close(p)
	if p.successor && p.ready(ctx) != nil {
		in.close()
		return px.Shutdown(context.WithoutCancel(ctx)) // nobody was let in: nothing is waited for
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- in.serve(inner) }()
	p.succeed()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	px.Leave()
	if !p.replaced.Load() {
		select {
		case err := <-failed:
			return err
		case <-time.After(x.DrainWait):
		}
	}
	cancel()
	err := <-failed // the doors are closed, and whoever came in by them is known
	return errors.Join(err, x.drain(context.WithoutCancel(ctx), p, px))
}

// drain lets what is open end. Unused connections of clients are left open for a moment first: a request may be on its way,
// and its answer tells the client that there is no other one after it.
func (x *Proxy) drain(ctx context.Context, p *Process, px *proxy.Proxy) error {
	ctx, cancel := context.WithTimeout(ctx, x.DrainTimeout)
	defer cancel()
	for over := time.After(min(lastCall, x.DrainTimeout)); px.Clients() > 0; {
		select {
		case <-time.After(lastCall / 20):
			continue
		case <-over:
		}
		break
	}
	err := px.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		p.Log.Warn().Dur("after", x.DrainTimeout).Msg("requests that were still open are cut")
		err = nil
	}
	return err
}

// lastCall is how long a client may still ask over a connection that it keeps once nobody is let in any more.
const lastCall = 500 * time.Millisecond

// Ends is the longest that the end of the role may take.
func (x *Proxy) Ends() time.Duration { return x.DrainWait + x.DrainTimeout + 5*time.Second }

// goodbyeTimeout bounds the proxy's own goodbye: the process ends after it, and without Kafka it takes all of this. A
// proxy whose goodbye is lost is only listed as stale.
const goodbyeTimeout = 500 * time.Millisecond

// beat tells the registry of this proxy until ctx ends. That it can't be done never ends the proxy. One that takes another
// one's place begins when it serves: until then the other one beats under the same id, and the registry would not hear it any
// more after a beat of the newer incarnation.
func (x *Proxy) beat(ctx context.Context, p *Process, k *kafkaconn.Options, conn *kafkaconn.Conn, bound *net.TCPAddr, a *agent.Agent) error {
	select {
	case <-p.serving:
	case <-ctx.Done():
		return nil
	}
	ip, port := x.address(ctx, p, conn.Brokers, bound, heartbeat.OutgoingIP)
	if ctx.Err() != nil {
		return nil
	}
	sender, err := heartbeat.NewSender(heartbeat.Config{
		Brokers: conn.Brokers, Topic: k.TopicHeartbeat, Transport: conn.Transport,
		Beat: heartbeat.Beat{
			Service: AgentService, ID: x.ID, Scheme: "http", IP: ip, Port: port, Zone: x.Zone,
			Interval: heartbeat.Duration(x.BeatInterval),
		},
		GoodbyeTimeout: goodbyeTimeout,

		Meta:    a.Report,
		OnError: func(err error) { p.Log.Debug().Err(err).Str("role", "proxy").Msg("own beat") },
	})
	if err != nil {
		p.Log.Error().Err(err).Msg("the proxy can't beat: the registry will not know it")
		<-ctx.Done()
		return nil
	}
	if err := sender.Run(ctx); err != nil {
		p.Log.Warn().Err(err).Msg("the proxy's goodbye")
	}
	return nil
}

// address is where others reach us: as told, or the address that we listen on, or that of the way to a broker, which is
// looked up until it is found or ctx ends.
func (x *Proxy) address(
	ctx context.Context, p *Process, brokers []string, bound *net.TCPAddr, lookup func(context.Context, string) (string, error),
) (ip string, port int) {
	if told, err := netip.ParseAddrPort(x.Advertise); err == nil {
		return told.Addr().String(), int(told.Port())
	}
	if !bound.IP.IsUnspecified() {
		return bound.IP.String(), bound.Port
	}
	for i := 0; ctx.Err() == nil; i++ {
		ip, err := lookup(ctx, brokers[i%len(brokers)])
		if err == nil {
			return ip, bound.Port
		}
		if i == 0 {
			p.Log.Warn().Err(err).Str("role", "proxy").Msg("no beats before the own address is found; --advertise says it")
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return "", 0
}

// defaultID names an instance by host and port, which stay the same over restarts.
func defaultID(port int) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	id := agentID(host)
	return id[:min(len(id), 58)] + "-" + strconv.Itoa(port)
}

// agentID replaces what an instance's id may not hold.
func agentID(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r) {
			return r
		}
		return '-'
	}, s[:min(len(s), 64)])
}
