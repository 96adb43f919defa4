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
}

// Flags declares --PREFIX-ca, -cert, -key and -server-name in g, and the checks that the files load.
func (f *Files) Flags(set *settings.Set, g *settings.Group, prefix, what string) {
	g.File(&f.CA, prefix+"-ca", "PEM file with the authorities that may sign "+what+"'s certificate; absent: the system's", func(path string) error {
		_, err := authorities(path)
		return err
	})
	g.File(&f.Cert, prefix+"-cert", "PEM file with our certificate, where "+what+" asks for one", nil)
	g.File(&f.Key, prefix+"-key", "PEM file with the key of that certificate", nil)
	g.String(&f.ServerName, prefix+"-server-name", "", "name to expect in "+what+"'s certificate; absent: the host that is dialled")
	set.Check(func() settings.Problems {
		switch {
		case f.Cert != "" && f.Key == "":
			return settings.Problems{{Flag: prefix + "-key", Allowed: "needed with --" + prefix + "-cert"}}
		case f.Cert == "" && f.Key != "":
			return settings.Problems{{Flag: prefix + "-cert", Allowed: "needed with --" + prefix + "-key"}}
		case f.Cert == "" || !readable(f.Key):
			return nil // the key's own check says so
		}
		if _, err := tls.LoadX509KeyPair(f.Cert, f.Key); err != nil {
			return settings.Problems{{Flag: prefix + "-cert", Value: f.Cert, Allowed: "must load with --" + prefix + "-key " + f.Key + ": " + err.Error()}}
		}
		return nil
	})
}

func readable(path string) bool {
	_, err := os.ReadFile(path)
	return err == nil
}

// Given reports whether any of the files or the name is set.
func (f *Files) Given() bool { return f.CA != "" || f.Cert != "" || f.Key != "" || f.ServerName != "" }

// Load reads the files. The configuration asks for TLS 1.2 at least.
func (f *Files) Load() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pool, err := authorities(f.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		conf.RootCAs = pool
	}
	switch {
	case f.Cert == "" && f.Key == "":
		return conf, nil
	case f.Cert == "" || f.Key == "":
		return nil, errors.New("tls: a certificate and its key are needed together")
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: load %s with %s: %w", f.Cert, f.Key, err)
	}
	conf.Certificates = []tls.Certificate{pair}
	return conf, nil
}

// authorities reads the certificates of a PEM file.
func authorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("a PEM file is needed, " + path + " holds no certificate in that form")
	}
	return pool, nil
}
