package tlsconf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// identity writes a self-signed certificate for name and its key.
func identity(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(file, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", raw)
}

// handshake connects client to a server that asks for a certificate, and says how it went on both sides.
func handshake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() {
		err := tls.Server(a, server).Handshake()
		a.Close()
		done <- err
	}()
	clientErr = tls.Client(b, client).Handshake()
	b.Close()
	return <-done, clientErr
}

func TestBothSidesProveThemselves(t *testing.T) {
	serverCert, serverKey := identity(t, "kafka.test")
	ourCert, ourKey := identity(t, "client.test")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	server := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}

	good := &Files{CA: serverCert, Cert: ourCert, Key: ourKey, ServerName: "kafka.test"}
	conf, err := good.Load()
	if err != nil {
		t.Fatal(err)
	}
	if s, c := handshake(t, server, conf); s != nil || c != nil {
		t.Errorf("server %v, client %v", s, c)
	}
	for name, f := range map[string]*Files{
		"another name":      {CA: serverCert, Cert: ourCert, Key: ourKey, ServerName: "other.test"},
		"another authority": {CA: ourCert, Cert: ourCert, Key: ourKey, ServerName: "kafka.test"},
		"no certificate":    {CA: serverCert, ServerName: "kafka.test"},
	} {
		conf, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		if s, c := handshake(t, server, conf); s == nil && c == nil {
			t.Errorf("%s: the handshake succeeded", name)
		}
	}
}

func TestKeyOfAnotherCertificate(t *testing.T) {
	cert, _ := identity(t, "a")
	_, key := identity(t, "b")
	if _, err := (&Files{Cert: cert, Key: key}).Load(); err == nil || !strings.Contains(err.Error(), cert) {
		t.Errorf("error %v", err)
	}
}

func TestEachFileIsNamedByItsOwnFlag(t *testing.T) {
	cert, key := identity(t, "a")
	_, other := identity(t, "b")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--x-ca=/nope":                           "x-ca",
		"--x-ca=" + text:                         "x-ca",
		"--x-cert=" + cert:                       "x-key",
		"--x-key=" + key:                         "x-cert",
		"--x-cert=/nope --x-key=" + key:          "x-cert",
		"--x-cert=" + cert + " --x-key=/nope":    "x-key",
		"--x-cert=" + cert + " --x-key=" + other: "x-cert",
		"--x-cert=/nope":                         "x-cert x-key",
		"--x-cert=" + cert + " --x-key=" + key:   "",
		"--x-ca=" + cert:                         "",
	} {
		fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
		set, f := settings.NewSet(fs), &Files{}
		f.Flags(set, set.Group("TLS"), "x", "the server")
		if err := fs.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		var flags []string
		for _, p := range set.Problems() {
			flags = append(flags, p.Flag)
		}
		if got := strings.Join(flags, " "); got != want {
			t.Errorf("%s: problems with %q, want %q", line, got, want)
		}
	}
}
