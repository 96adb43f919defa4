//go:build linux

package dialect

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipesAndDevicesAreNotRead: a reload would wait for them, and all that come behind it.
func TestPipesAndDevicesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "a.conf")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, "/dev/zero"} {
		for _, text := range []string{"include " + name + ";", "map $host $x { include " + name + "; }", "geo $x { include " + name + "; }"} {
			if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			done := make(chan string, 1)
			go func() {
				_, faults := Read(file, Options{})
				said := ""
				for _, f := range faults {
					said += f.Error() + "\n"
				}
				done <- said
			}()
			select {
			case got := <-done:
				if !strings.Contains(got, file+":1: ") || !strings.Contains(got, "is no regular file") {
					t.Errorf("%s: %s", text, got)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: no end", text)
			}
		}
	}
}
