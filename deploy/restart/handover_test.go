//go:build linux

package restart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pair writes a certificate that signs itself, and its key.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	like := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"x"}}
	signed, err := x509.CreateCertificate(rand.Reader, like, like, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestDoorsWithTLSAreHandedOn, and clients of HTTP/2 are told to go on over another connection.
func TestDoorsWithTLSAreHandedOn(t *testing.T) {
	at, sealed, admin := freePort(t), freePort(t), freePort(t)
	cert, key := pair(t)
	p := start(t, "proxy", "--listen", at, "--tls-listen", sealed, "--tls-cert", cert, "--tls-key", key, "--http2", "--admin-listen", admin, "--id", "x",
		"--state-dir", published(t, "x", backend(t)), "--kafka-brokers", freePort(t), "--topic-wait", "100ms", "--drain-timeout", "3s")
	ready(t, admin)
	l := newLoad(sealed)
	l.tls = true
	l.begin(2)
	defer l.stop()
	l.await(t, 50)
	p.replace()
	l.await(t, 50)
	p.ends(p.pids[0], 10*time.Second)
	l.await(t, 50)
	l.end(t)
}

// TestTheNextFileMayListenElsewhere: what it does not list is closed, what it lists anew is opened, and the rest goes on.
func TestTheNextFileMayListenElsewhere(t *testing.T) {
	one, two, three, admin, to := freePort(t), freePort(t), freePort(t), freePort(t), backend(t)
	path := file(t, "", one+"; listen "+two, to)
	p := start(t, "proxy", "--conf", path, "--admin-listen", admin)
	ready(t, admin)
	file(t, path, two+"; listen "+three, to)
	l := newLoad(two)
	l.begin(1)
	defer l.stop()
	l.await(t, 20)
	p.replace()
	p.ends(p.pids[0], 10*time.Second)
	l.await(t, 20)
	l.end(t)
	if got := status(t, "http://"+one+"/"); got != 0 {
		t.Errorf("the door that is gone: %d", got)
	}
	if got := status(t, "http://"+three+"/"); got != 200 {
		t.Errorf("the new door: %d", got)
	}
}

// child waits for a process that another one has started.
func child(t *testing.T, of int) int {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
		for _, name := range lists {
			text, _ := os.ReadFile(name)
			if first, _, _ := strings.Cut(string(text), " "); first != "" {
				pid, err := strconv.Atoi(first)
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatal("nobody was started")
	return 0
}

// TestAProcessToldToEndBeforeItServes has the sockets in common with the one that goes on, and leaves them as they are.
// A second SIGUSR2 that comes while the first is obeyed starts nobody else.
func TestAProcessToldToEndBeforeItServes(t *testing.T) {
	at, admin, dir := freePort(t), freePort(t), published(t, "x", backend(t))
	p := start(t, "proxy", "--listen", at, "--admin-listen", admin, "--id", "x", "--state-dir", dir,
		"--kafka-brokers", freePort(t), "--topic-wait", "100ms")
	ready(t, admin)
	kept := filepath.Join(dir, "topology-x")
	text, err := os.ReadFile(kept)
	if err == nil {
		err = os.Remove(kept) // so that the next one waits for a topology
	}
	if err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR2)
	next := child(t, p.pids[0])
	p.said(1, "on a socket that was open before")
	p.said(2, "on a socket that was open before")
	time.Sleep(200 * time.Millisecond) // it obeys signals by now, and if it does not it ends as well
	if err := syscall.Kill(next, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.said(1, "no other process took over")
	for range 3 {
		if got := status(t, "http://"+at+"/"); got != 200 {
			t.Fatalf("the old process's door: %d", got)
		}
	}
	if err := os.WriteFile(kept, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGUSR2)
	p.replace()
	p.ends(p.pids[0], 10*time.Second)
	if got := status(t, "http://"+at+"/"); got != 200 {
		t.Errorf("the new process's door: %d", got)
	}
	if n := strings.Count(p.log(), "starting the program anew"); n != 2 {
		t.Errorf("%d processes were started", n)
	}
}
