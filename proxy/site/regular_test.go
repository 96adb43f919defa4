//go:build linux

package site

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
)

// TestOnlyRegularFilesAreRead: a pipe that nobody writes to, or a device without end, must not hold up a reload.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, 8<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, "/dev/zero", large} {
		for key, lines := range map[string]string{
			"trusted":     "proxy_ssl_verify on; proxy_ssl_trusted_certificate " + name,
			"certificate": "proxy_ssl_certificate " + name + "; proxy_ssl_certificate_key " + name,
			"of clients":  "ssl_certificate " + name + "; ssl_certificate_key " + name,
		} {
			done := make(chan []topology.Fault, 1)
			go func() {
				_, faults := compileWith(t, "server { listen 80 ssl; "+lines+"; location / { proxy_pass https://127.0.0.1; } }", Options{})
				done <- faults
			}()
			select {
			case faults := <-done:
				if len(faults) == 0 || !strings.Contains(faults[0].Error()+faults[len(faults)-1].Error(), "is no regular file of at most 8388608 bytes") {
					t.Errorf("%s %s: %v", key, name, faults)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s %s: no end", key, name)
			}
		}
	}
}
