package site

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestTLSOfPeers: nothing is verified unless proxy_ssl_verify says so, and then by the name of the target.
func TestTLSOfPeers(t *testing.T) {
	var said string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { said = r.TLS.ServerName }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}) // for example.com and 127.0.0.1
	o := &Options{ReadFile: func(name string) ([]byte, error) {
		if name == "/conf/ca.pem" {
			return ca, nil
		}
		return nil, errors.New("no such file")
	}, Prefix: "/conf"}
	for _, tc := range []struct {
		name string
		ssl  sslSettings
		host string
		ok   bool
		said string
	}{
		{"default", sslSettings{}, "any.example", true, ""},
		{"name said", sslSettings{serverName: true}, "any.example:8443", true, "any.example"},
		{"verified", sslSettings{verify: true, trusted: "ca.pem"}, "example.com", true, ""},
		{"verified, name said", sslSettings{verify: true, trusted: "ca.pem", serverName: true}, "example.com", true, "example.com"},
		{"verified, address", sslSettings{verify: true, trusted: "/conf/ca.pem"}, "127.0.0.1:1", true, ""},
		{"another name", sslSettings{verify: true, trusted: "ca.pem"}, "any.example", false, ""},
		{"another name said to be right", sslSettings{verify: true, trusted: "ca.pem", name: "example.com"}, "any.example", true, ""},
		{"another version", sslSettings{most: tls.VersionTLS11, least: tls.VersionTLS10}, "x", false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			said = ""
			c, err := o.tlsFor(tc.ssl.named(tc.host))
			if err != nil {
				t.Fatal(err)
			}
			conn, err := tls.Dial("tcp", s.Listener.Addr().String(), c)
			if err == nil {
				_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
				_, _ = io.ReadAll(conn)
				_ = conn.Close()
			}
			if (err == nil) != tc.ok {
				t.Errorf("%v, want ok %v", err, tc.ok)
			}
			if err == nil && said != tc.said {
				t.Errorf("the server was told %q, want %q", said, tc.said)
			}
		})
	}
	if _, err := o.tlsFor(sslSettings{verify: true, trusted: "none.pem"}); err == nil {
		t.Error("no such file")
	}
}

// TestVerifyDepth: a chain with more certificates in between than proxy_ssl_verify_depth is not believed.
func TestVerifyDepth(t *testing.T) {
	now := time.Now()
	sign := func(name string, ca bool, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
		if parent == nil {
			parent, by = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		c, err = x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c, key
	}
	root, rootKey := sign("root", true, nil, nil)
	first, firstKey := sign("first", true, root, rootKey)
	second, secondKey := sign("second", true, first, firstKey)
	leaf, _ := sign("peer.example", false, second, secondKey)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	chain := tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf, second, first}}
	for depth, ok := range []bool{false, false, true, true} {
		if err := verifier(pool, "peer.example", depth)(chain); (err == nil) != ok {
			t.Errorf("depth %d: %v, want ok %v", depth, err, ok)
		}
	}
	if verifier(pool, "peer.example", 9)(tls.ConnectionState{}) == nil {
		t.Error("a peer without a certificate")
	}
}

// TestTLSOfNamesThatClientsChoose: names that make no difference share a configuration, and others are not kept without end.
func TestTLSOfNamesThatClientsChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		ssl  sslSettings
		same bool
	}{
		"not said":     {sslSettings{}, true},
		"said":         {sslSettings{serverName: true}, false},
		"given":        {sslSettings{serverName: true, name: "x"}, true},
		"given to all": {sslSettings{name: "x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := &tlsConfigs{options: &Options{}, ssl: tc.ssl, byName: map[string]*tls.Config{}}
			a, errA := all.config("a:443")
			b, errB := all.config("b:443")
			if errA != nil || errB != nil || (a == b) != tc.same {
				t.Errorf("the same: %v; %v, %v", a == b, errA, errB)
			}
			for i := range 2 * mostTLSNames {
				if _, err := all.config(fmt.Sprintf("h%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(all.byName); n > mostTLSNames {
				t.Errorf("%d are kept", n)
			}
		})
	}
}
