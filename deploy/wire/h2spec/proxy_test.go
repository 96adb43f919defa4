package h2spec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// build makes a program in a folder of the test.
func build(t *testing.T, program, module string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(program))
	c := exec.Command("go", "build", "-o", out, program)
	c.Dir = module
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, text)
	}
	return out
}

// served is a proxy that runs, by its ports.
type served struct{ plain, secure string }

const conf = `
server { listen 127.0.0.1:%[1]s; location / { return 200 "an answer\n"; } }
server { listen 127.0.0.1:%[2]s http2; location / { proxy_pass http://127.0.0.1:%[1]s; } }
server { listen 127.0.0.1:%[3]s ssl http2; ssl_certificate cert.pem; ssl_certificate_key key.pem;
	location / { proxy_pass http://127.0.0.1:%[1]s; } }
`

// start runs the proxy, with a backend that is itself.
func start(t *testing.T) served {
	t.Helper()
	program := os.Getenv("UPSTRAND_BINARY")
	if program == "" {
		program = build(t, "./cmd/upstrand", filepath.Join("..", "..", ".."))
	}
	dir := t.TempDir()
	behind, plain, secure := port(t), port(t), port(t)
	certify(t, dir)
	write(t, filepath.Join(dir, "conf"), fmt.Appendf(nil, conf, behind, plain, secure))
	c := exec.Command(program, "proxy", "--conf", filepath.Join(dir, "conf"), "--admin-listen", "")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+secure); err == nil {
			_ = conn.Close()
			return served{plain, secure}
		}
		if time.Now().After(end) {
			t.Fatal("the proxy does not listen")
		}
	}
}

func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

// certify writes cert.pem and key.pem for 127.0.0.1.
func certify(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"proxy.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
