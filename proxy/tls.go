package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// clientTLS is the TLS of the side towards clients. What a handshake goes by is asked of the routing table in force when
// it begins, so that a change needs no new socket and touches no connection.
type clientTLS struct {
	proxy *Proxy
	files certs.Store
	own   *certs.Server // for what was published; nil: none is served there
	reads *prometheus.CounterVec

	mu      sync.Mutex
	configs map[netip.AddrPort]*tls.Config // by local address

	doors atomic.Pointer[[]site.Listen] // with TLS, of what was published; nil: none. It is replaced with mu held
}

// mostConfigs are kept at once: where a whole network is local, clients choose the addresses.
const mostConfigs = 4096

func newClientTLS(p *Proxy, set certs.Settings) (*clientTLS, error) {
	c := &clientTLS{proxy: p, reads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "upstrand_proxy_certificate_reads_total",
		Help: "Times that certificates or keys had changed and were read again, by result: used or refused."}, []string{"result"})}
	c.files.Watch = c.told
	for _, result := range []string{"used", "refused"} {
		c.reads.WithLabelValues(result)
	}
	if p.config.Registerer != nil {
		expiry := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "upstrand_proxy_certificate_expiry_timestamp_seconds",
			Help: "When the first of the certificates that clients are shown expires, in Unix time; 0: there is none."}, c.expiry)
		current := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "upstrand_proxy_certificates_current",
			Help: "1; 0 while certificates or keys on disk can't be used, so that what was read before is in force."}, c.current)
		for _, m := range []prometheus.Collector{c.reads, expiry, current} {
			if err := p.config.Registerer.Register(m); err != nil {
				return nil, fmt.Errorf("proxy: metrics: %w", err)
			}
		}
	}
	if len(set.Pairs) == 0 {
		return c, nil
	}
	var err error
	if c.own, err = c.files.Server(set, false); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return c, nil
}

// towardsPeers is the configuration for instances of scheme https, which shows them what stands in the files of own as they
// are by then.
func (c *clientTLS) towardsPeers(conf *tls.Config, own certs.Pair) (*tls.Config, error) {
	if own.Cert == "" {
		return conf, nil
	}
	held, err := c.files.Client(certs.Peer{Own: own}, false)
	if err != nil {
		return nil, fmt.Errorf("proxy: TLS to instances: %w", err)
	}
	if conf == nil {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	conf = conf.Clone()
	conf.Certificates, conf.GetClientCertificate = nil, held.Config("", "").GetClientCertificate
	return conf, nil
}

func (c *clientTLS) expiry() float64 {
	if t := c.files.Expiry(); !t.IsZero() {
		return float64(t.Unix())
	}
	return 0
}

func (c *clientTLS) current() float64 {
	if c.files.Current() {
		return 1
	}
	return 0
}

// told logs that files have changed.
func (c *clientTLS) told(e certs.Event) {
	if e.Err != nil {
		c.reads.WithLabelValues("refused").Inc()
		c.proxy.log.Error().Strs("files", e.Files).Err(e.Err).Msg("certificates can't be used: what was read before stays in force")
		return
	}
	c.reads.WithLabelValues("used").Inc()
	c.proxy.log.Info().Strs("files", e.Files).Msg("certificates read again")
}

// of is the configuration for connections that were taken at an address.
func (c *clientTLS) of(local netip.AddrPort) *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.configs[local]; made != nil {
		return made
	}
	if c.configs == nil || len(c.configs) >= mostConfigs {
		c.configs = map[netip.AddrPort]*tls.Config{}
	}
	made := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return c.handshake(local, hello) },
	}
	c.configs[local] = made
	return made
}

var errNoTLS = errors.New("no server speaks TLS here")

func (c *clientTLS) handshake(local netip.AddrPort, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if t := c.proxy.table.Load(); t != nil && t.site != nil {
		return t.site.Handshake(local, hello)
	}
	if c.own == nil {
		return nil, errNoTLS
	}
	return c.own.Config(true), nil
}

// opened notes a door with TLS of what was published.
func (c *clientTLS) opened(d Door) {
	if !d.TLS || c.own == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var doors []site.Listen
	if was := c.doors.Load(); was != nil {
		doors = slices.Clone(*was)
	}
	doors = append(doors, site.Listen{Addr: d.Addr})
	c.doors.Store(&doors)
}

// refuses is the answer to a request in plain HTTP at a door with TLS, and to a client without the certificate that is
// asked for. It is about what was published; of a file its servers decide.
func (c *clientTLS) refuses(r *forward.Request) (refusal, bool) {
	if c.own == nil {
		return refusal{}, false
	}
	if r.TLS == nil {
		if doors := c.doors.Load(); doors != nil && slices.ContainsFunc(*doors, func(l site.Listen) bool { return l.Takes(r.Local) }) {
			return refusal{http.StatusBadRequest, "400 this port speaks HTTPS", "plain_http"}, true
		}
		return refusal{}, false
	}
	switch c.own.Refuses(c.own.Judge(r.TLS)) {
	case certs.StatusNoCertificate:
		return refusal{http.StatusBadRequest, "400 a client certificate is needed", "client_certificate"}, true
	case certs.StatusBadCertificate:
		return refusal{http.StatusBadRequest, "400 the client certificate is not accepted", "client_certificate"}, true
	}
	return refusal{}, false
}

// RenewCertificates reads certificates and keys that have changed at once. They are looked at every few seconds anyway.
func (p *Proxy) RenewCertificates() { p.tls.files.Look(true) }
