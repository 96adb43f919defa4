// Package tlsconf loads the client side of TLS from files: the authority to trust, and our own certificate where the
// server asks for one. It is used for Kafka and for MySQL; it does not serve TLS.
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Files are the settings of one TLS client.
type Files struct {
	CA         string // PEM; empty: the system's authorities
	Cert, Key  string // PEM; both or none
	ServerName string // empty: the host that is dialled
	prefix     string
}

// Flags declares --PREFIX-ca, -cert, -key and -server-name in g, and the check that the files load.
func (f *Files) Flags(set *settings.Set, g *settings.Group, prefix, what string) {
	f.prefix = prefix
	g.File(&f.CA, prefix+"-ca", "PEM file with the authorities that may sign "+what+"'s certificate; absent: the system's")
	g.File(&f.Cert, prefix+"-cert", "PEM file with our certificate, where "+what+" asks for one")
	g.File(&f.Key, prefix+"-key", "PEM file with the key of that certificate")
	g.String(&f.ServerName, prefix+"-server-name", "", "name to expect in "+what+"'s certificate; absent: the host that is dialled")
	set.Check(func() settings.Problems {
		if _, err := f.Load(); err != nil {
			return settings.Problems{{Flag: prefix, Allowed: err.Error()}}
		}
		return nil
	})
}

// Given reports whether any of the files or the name is set.
func (f *Files) Given() bool { return f.CA != "" || f.Cert != "" || f.Key != "" || f.ServerName != "" }

// Load reads the files. The configuration asks for TLS 1.2 at least.
func (f *Files) Load() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: read authorities: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls: %s holds no PEM certificate", f.CA)
		}
	}
	switch {
	case f.Cert == "" && f.Key == "":
		return conf, nil
	case f.Cert == "" || f.Key == "":
		return nil, errors.New("tls: a certificate and its key are needed together (" + f.prefix + "-cert, " + f.prefix + "-key)")
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: load %s with %s: %w", f.Cert, f.Key, err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}
