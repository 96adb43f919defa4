package roles

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/certs"
)

// clientTLS is the settings of TLS and HTTP/2 towards clients, without a file.
type clientTLS struct {
	Listen     []string // addresses
	Certs      []string // files
	Keys       []string // of each certificate
	ClientCA   string   // file
	Verify     string   // off, optional, on
	Least      string   // 1.2, 1.3
	TicketKeys []string // files
	HTTP2      bool
}

func (t *clientTLS) flags(set *settings.Set) {
	g := set.Group("TLS and HTTP/2 towards clients; with --conf the file says it")
	g.Words(&t.Listen, "tls-listen", "addresses (HOST:PORT) for traffic over TLS, beside --listen; absent: none")
	g.Words(&t.Certs, "tls-cert",
		"PEM files with a certificate and its chain each; clients get the one that has the name they ask for, else the first; looked at while the proxy runs")
	g.Words(&t.Keys, "tls-key", "PEM files with the keys of --tls-cert, in the same order")
	g.Choice(&t.Least, "tls-min-version", "1.2", "lowest version of TLS", "1.2", "1.3")
	g.Choice(&t.Verify, "tls-client-verify", "off", "whether clients must show a certificate that one of --tls-client-ca has signed: optional refuses bad ones only",
		"off", "optional", "on")
	g.File(&t.ClientCA, "tls-client-ca", "PEM file with the authorities that may sign clients' certificates; looked at while the proxy runs", nil)
	g.Words(&t.TicketKeys, "tls-ticket-key",
		"files of 48 or 80 random bytes, alike on several proxies, so that each resumes sessions of the others: the first makes tickets; absent: keys of this process")
	g.Bool(&t.HTTP2, "http2", true, "speak HTTP/2 too: over TLS by ALPN, else to clients that begin with it (h2c)")
	set.Check(t.problems)
	set.Check(func() settings.Problems { return t.withFile(set) })
}

// withFile: a file says all of it.
func (t *clientTLS) withFile(set *settings.Set) (bad settings.Problems) {
	if !set.Given("conf") {
		return nil
	}
	for _, name := range []string{"tls-listen", "tls-cert", "tls-key", "tls-min-version", "tls-client-verify", "tls-client-ca", "tls-ticket-key", "http2"} {
		if set.Given(name) {
			bad = append(bad, settings.Problem{Flag: name, Allowed: "not with --conf: listen … ssl, ssl_… and http2 of the file say it"})
		}
	}
	return bad
}

func (t *clientTLS) problems() (bad settings.Problems) {
	add := func(flag, value, allowed string) {
		bad = append(bad, settings.Problem{Flag: flag, Value: value, Allowed: allowed})
	}
	for _, addr := range t.Listen {
		if _, port, err := net.SplitHostPort(addr); err != nil || !isPort(port) {
			add("tls-listen", addr, "allowed: host:port or :port, such as 127.0.0.1:8443, several with commas; port 0 takes a free one")
		}
	}
	switch {
	case len(t.Listen) > 0 && len(t.Certs) == 0:
		add("tls-cert", "", "needed with --tls-listen")
	case len(t.Listen) == 0 && len(t.Certs) > 0:
		add("tls-listen", "", "needed with --tls-cert")
	case len(t.TicketKeys) > 0 && len(t.Certs) == 0:
		add("tls-cert", "", "needed with --tls-ticket-key")
	case len(t.Certs) != len(t.Keys):
		add("tls-key", strings.Join(t.Keys, ","), fmt.Sprintf("one for each of --tls-cert: %d are given for %d", len(t.Keys), len(t.Certs)))
	case t.Verify != "off" && t.ClientCA == "":
		add("tls-client-ca", "", "needed with --tls-client-verify="+t.Verify)
	case t.Verify == "off" && t.ClientCA != "":
		add("tls-client-verify", "off", "on or optional with --tls-client-ca")
	case len(t.Certs) > 0 && len(bad) == 0:
		server, err := new(certs.Store).Server(t.settings(), false)
		if err != nil {
			add(t.blamed(err), "", err.Error())
			return bad
		}
		server.Close()
	}
	return bad
}

// blamed is the flag that names the file which can't be used.
func (t *clientTLS) blamed(err error) string {
	var of *certs.FileError
	switch {
	case !errors.As(err, &of):
		return "tls-cert"
	case of.File == t.ClientCA:
		return "tls-client-ca"
	}
	return "tls-ticket-key"
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// settings are those of the proxy.
func (t *clientTLS) settings() (s certs.Settings) {
	if len(t.Certs) == 0 {
		return s
	}
	for i, cert := range t.Certs {
		s.Pairs = append(s.Pairs, certs.Pair{Cert: cert, Key: t.Keys[i]})
	}
	s.Verify = map[string]certs.Verify{"on": certs.On, "optional": certs.Optional}[t.Verify]
	s.CA, s.Depth, s.TicketKeys, s.HTTP1 = t.ClientCA, -1, slices.Clone(t.TicketKeys), !t.HTTP2
	if t.Least == "1.3" {
		s.Min = tls.VersionTLS13
	}
	return s
}

// ports are the addresses for TLS.
func (t *clientTLS) ports(like proxy.Door) (list []port) {
	like.TLS = true
	for _, addr := range t.Listen {
		list = append(list, port{"tls-listen", addr, like})
	}
	return list
}
