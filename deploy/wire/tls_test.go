package wire

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
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tlsLane is FileLane over TLS, with a certificate of its own in a folder.
func tlsLane(dir string) (*Lane, error) {
	roots, err := writeCertificate(dir)
	if err != nil {
		return nil, err
	}
	l, err := NewLane(func(b *Backend) (*Proxy, error) {
		return FromFile(func(listen string) string {
			secure := fmt.Sprintf("listen %s ssl;\n  ssl_certificate %s/cert.pem;\n  ssl_certificate_key %[2]s/key.pem;", listen, dir)
			return strings.Replace(LaneServer(listen, b.Addr), fmt.Sprintf("listen %s;", listen), secure, 1)
		})
	})
	if err != nil {
		return nil, err
	}
	l.TLS = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	return l, nil
}

func writeCertificate(dir string) (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return roots, errors.Join(os.WriteFile(filepath.Join(dir, "cert.pem"), text, 0o644),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}
