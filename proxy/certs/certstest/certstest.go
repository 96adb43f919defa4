// Package certstest makes authorities and certificates for tests. It is no tool to make real ones with.
package certstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	Cert *x509.Certificate
	key  crypto.Signer
	By   *Authority // nil: itself
}

var serial atomic.Int64

// New is an authority that signs itself.
func New(t testing.TB, name string) *Authority {
	a := &Authority{t: t}
	a.Cert, a.key = sign(t, template(name, true), nil, ecKey(t))
	return a
}

// Sub is an authority that a has signed.
func (a *Authority) Sub(name string) *Authority {
	b := &Authority{t: a.t, By: a}
	b.Cert, b.key = sign(a.t, template(name, true), a, ecKey(a.t))
	return b
}

// Pool has the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Cert)
	return p
}

// Key is the authority's own.
func (a *Authority) Key() crypto.Signer { return a.key }

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw})
}

// Option changes what is signed.
type Option func(*Order)

// Order is what an authority is asked to sign.
type Order struct {
	Cert *x509.Certificate
	key  crypto.Signer
}

// RSA makes the key one of RSA; else it is ECDSA.
func RSA(t testing.TB) Option {
	return func(o *Order) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		o.key = key
	}
}

// Expired makes it one of yesterday.
func Expired(o *Order) {
	o.Cert.NotBefore, o.Cert.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
}

// Early makes it one of tomorrow.
func Early(o *Order) {
	o.Cert.NotBefore, o.Cert.NotAfter = time.Now().Add(24*time.Hour), time.Now().Add(48*time.Hour)
}

// Subject is what the certificate is about, in place of its first name.
func Subject(name pkix.Name) Option { return func(o *Order) { o.Cert.Subject = name } }

// Leaf is a certificate for names and addresses, with its chain but the root.
func (a *Authority) Leaf(names []string, opts ...Option) *tls.Certificate {
	c := template(names[0], false)
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	o := &Order{Cert: c}
	for _, f := range opts {
		f(o)
	}
	if o.key == nil {
		o.key = ecKey(a.t)
	}
	leaf, key := sign(a.t, o.Cert, a, o.key)
	out := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	for by := a; by.By != nil; by = by.By {
		out.Certificate = append(out.Certificate, by.Cert.Raw)
	}
	return out
}

func template(name string, ca bool) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(serial.Add(1) + 0xabcdef), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true, IsCA: ca,
	}
	if ca {
		c.KeyUsage = x509.KeyUsageCertSign
	} else {
		c.KeyUsage = x509.KeyUsageDigitalSignature
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return c
}

func ecKey(t testing.TB) crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, c *x509.Certificate, by *Authority, key crypto.Signer) (*x509.Certificate, crypto.Signer) {
	t.Helper()
	parent, signer := c, key
	if by != nil {
		parent, signer = by.Cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// Texts are a certificate with its chain, and its key, as PEM.
func Texts(t testing.TB, c *tls.Certificate) (cert, key []byte) {
	t.Helper()
	for _, der := range c.Certificate {
		cert = append(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Write puts NAME.crt and NAME.key into a folder, in place of those that are there.
func Write(t testing.TB, dir, name string, c *tls.Certificate) (cert, key string) {
	t.Helper()
	text, secret := Texts(t, c)
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	Put(t, cert, text)
	Put(t, key, secret)
	return cert, key
}

// Put writes a file and puts it in the place of the one there, so that nobody sees half of it.
func Put(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}
