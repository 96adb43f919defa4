package interop

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

// served is a proxy that runs, by its ports, and the file of the certificate of it and of its servers.
type served struct{ plain, secure, cert string }

const conf = `
client_max_body_size 0;
server { listen 127.0.0.1:%[1]s http2; location / { grpc_pass grpc://127.0.0.1:%[3]s; } }
server { listen 127.0.0.1:%[2]s ssl http2; ssl_certificate cert.pem; ssl_certificate_key key.pem;
	location / {
		grpc_pass grpcs://127.0.0.1:%[4]s;
		grpc_ssl_verify on; grpc_ssl_trusted_certificate cert.pem; grpc_ssl_name proxy.example;
	}
}
`

// start runs the proxy and two of gRPC's servers behind it.
func start(t *testing.T) served {
	t.Helper()
	program := os.Getenv("UPSTRAND_BINARY")
	if program == "" {
		program = build(t, "./cmd/upstrand", filepath.Join("..", "..", ".."))
	}
	server := build(t, "google.golang.org/grpc/interop/server", ".")
	dir := t.TempDir()
	plain, secure, one, two := port(t), port(t), port(t), port(t)
	certify(t, dir)
	write(t, filepath.Join(dir, "conf"), fmt.Appendf(nil, conf, plain, secure, one, two))
	cert := filepath.Join(dir, "cert.pem")
	run(t, server, "-port", one)
	run(t, server, "-port", two, "-use_tls", "-tls_cert_file", cert, "-tls_key_file", filepath.Join(dir, "key.pem"))
	run(t, program, "proxy", "--conf", filepath.Join(dir, "conf"), "--admin-listen", "")
	for _, p := range []string{one, two, plain, secure} {
		wait(t, p)
	}
	return served{plain, secure, cert}
}

// run starts a program that ends with the test.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	c := exec.Command(program, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
}

// wait waits until somebody listens there.
func wait(t *testing.T, port string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nobody listens on port %s", port)
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
