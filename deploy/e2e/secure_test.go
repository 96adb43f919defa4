package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/deploy/rig"
)

const (
	kafkaUser     = "upstrand"
	kafkaPassword = "a-kafka-password"
)

// The whole loop over TLS and a login to Kafka, with each mechanism; and, with the real database, over TLS to that. A wrong password
// and an unknown authority are refused, and no password is ever logged.
func TestTLSAndLogins(t *testing.T) {
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			var pki certificates
			w := start(t, shape{options: func(o *rig.Options) { pki = secure(t, o, mechanism) }})
			w.fleet(2, "shop")
			w.refused("a wrong password", "--kafka-brokers", w.Kafka.Addr, "--kafka-tls", "--kafka-tls-ca", pki.ca,
				"--kafka-sasl-mechanism", mechanism, "--kafka-sasl-user", kafkaUser, "--kafka-sasl-password-file", pki.wrong)
			w.refused("an unknown authority", "--kafka-brokers", w.Kafka.Addr, "--kafka-tls",
				"--kafka-sasl-mechanism", mechanism, "--kafka-sasl-user", kafkaUser, "--kafka-sasl-password-file", pki.password)
			for _, r := range w.Roles() {
				for _, secret := range []string{kafkaPassword, rig.DBPassword} {
					if strings.Contains(string(r.Output()), secret) {
						t.Errorf("the log of %s has a password in it", r.Name)
					}
				}
			}
		})
	}
}

// refused checks that a role with these Kafka settings never gets ready, and that its log has a cause.
func (w *world) refused(what string, flags ...string) {
	w.t.Helper()
	admin, err := rig.FreeAddr()
	w.ok(err)
	traffic, err := rig.FreeAddr()
	w.ok(err)
	p := &rig.Proc{Name: "refused", Path: w.Program(), Log: filepath.Join(w.Dir, "refused.log"),
		Args: append([]string{"proxy", "--log-format", "json", "--listen", traffic, "--admin-listen", admin,
			"--state-dir", filepath.Join(w.Dir, "refused.state")}, flags...)}
	w.ok(p.Start())
	defer p.Close()
	before := len(p.Output())
	w.until(20*time.Second, "a proxy with "+what+" says so", func() error {
		text := strings.ToLower(string(p.Output()[before:]))
		for _, word := range []string{"sasl", "authenti", "certificate", "unexpected eof"} {
			if strings.Contains(text, word) {
				return nil
			}
		}
		return errors.New(p.Tail(3))
	})
	if resp, err := plainGet("http://" + admin + "/readyz"); err == nil && resp == 200 {
		w.t.Errorf("a proxy with %s is ready", what)
	}
	w.ok(os.Remove(p.Log))
}

func plainGet(url string) (int, error) {
	resp, err := oneShot.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}

// certificates are files: an authority, a server's certificate for 127.0.0.1 signed by it, and passwords.
type certificates struct{ ca, cert, key, keystore, password, wrong string }

// secure makes a world's broker ask for TLS and a login, and the real database for TLS.
func secure(t *testing.T, o *rig.Options, mechanism string) certificates {
	t.Helper()
	pki, pool := issue(t, o.Dir)
	var login sasl.Mechanism = plain.Mechanism{Username: kafkaUser, Password: kafkaPassword}
	if name, ok := strings.CutPrefix(mechanism, "scram-"); ok {
		algorithm := map[string]scram.Algorithm{"sha-256": scram.SHA256, "sha-512": scram.SHA512}[name]
		var err error
		if login, err = scram.Mechanism(algorithm, kafkaUser, kafkaPassword); err != nil {
			t.Fatal(err)
		}
	}
	o.Secure = func(b rig.Broker) (rig.Endpoint, []string) {
		addr := b.Addr()
		if k, ok := b.(*rig.Kafka); ok {
			addr = k.TLSAddr()
		}
		return rig.Endpoint{Addr: addr, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, SASL: login},
			[]string{"--kafka-brokers", addr, "--kafka-tls", "--kafka-tls-ca", pki.ca, "--kafka-sasl-mechanism", mechanism,
				"--kafka-sasl-user", kafkaUser, "--kafka-sasl-password-file", pki.password}
	}
	if o.Parts == rig.RealParts {
		o.Kafka = rig.KafkaOptions{Login: &rig.Login{User: kafkaUser, Password: kafkaPassword}, KeyStore: pki.keystore}
		o.MariaDB = rig.MariaDBOptions{Cert: pki.cert, Key: pki.key, Extra: []string{"--require-secure-transport=ON"}}
		o.DatabaseFlags = []string{"--mysql-tls", "true", "--mysql-tls-ca", pki.ca}
		return pki
	}
	pair, err := tls.LoadX509KeyPair(pki.cert, pki.key)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(strings.ToUpper(mechanism), kafkaUser, kafkaPassword),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	o.Broker = &inProcess{cluster: cluster}
	return pki
}

// inProcess is an embedded broker in the test itself: the one of upstrand-dev offers neither TLS nor logins.
type inProcess struct {
	rig.Broker
	cluster *kfake.Cluster
}

func (b *inProcess) Addr() string                { return b.cluster.ListenAddrs()[0] }
func (b *inProcess) Start(context.Context) error { return nil }
func (b *inProcess) Tail(int) string             { return "" }
func (b *inProcess) Close()                      { b.cluster.Close() }

// issue makes the files in dir, readable for the servers.
func issue(t *testing.T, dir string) (certificates, *x509.CertPool) {
	t.Helper()
	sign := func(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	newKey := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	caKey, key := newKey(), newKey()
	from, to := time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	caTemplate := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	ca := sign(caTemplate, caTemplate, caKey, caKey)
	server := sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		ca, key, caKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Raw})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	write := func(name string, parts ...[]byte) string {
		path := filepath.Join(dir, name)
		var content []byte
		for _, p := range parts {
			content = append(content, p...)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return certificates{ca: write("ca.pem", caPEM), cert: write("cert.pem", certPEM, caPEM), key: write("key.pem", keyPEM),
		keystore: write("keystore.pem", keyPEM, certPEM, caPEM), password: write("kafka-password", []byte(kafkaPassword+"\n")),
		wrong: write("wrong-password", []byte("not it\n"))}, pool
}
