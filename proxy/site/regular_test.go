//go:build linux

package site

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOnlyRegularFilesAreRead: a pipe that nobody writes to, or a device without end, must not hold up a reload.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxRead+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, "/dev/zero", large} {
		for key, ssl := range map[string]sslSettings{
			"trusted": {verify: true, trusted: name}, "certificate": {cert: name, key: name},
		} {
			done := make(chan error, 1)
			go func() {
				_, err := (&Options{}).tlsFor(ssl)
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), "is no regular file of at most 8388608 bytes") {
					t.Errorf("%s %s: %v", key, name, err)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s %s: no end", key, name)
			}
		}
	}
}
