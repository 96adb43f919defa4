package accesslog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProbe: what it refuses can't be acquired, what it lets through can, and it makes nothing.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		there: "", filepath.Join(dir, "new"): "", "/dev/null": "", "/dev/stdout": "", "/dev/stderr": "",
		filepath.Join(dir, "no", "x"): "folder " + filepath.Join(dir, "no") + ": no such file", dir: "is no file", there + "/x": "not a directory",
	} {
		err := Probe(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
			t.Fatalf("%s: made %v, %v", path, names, err)
		}
		files := &Files{}
		l, opened := files.Acquire(path, Options{})
		if (opened == nil) != (err == nil) {
			t.Errorf("%s: %v, and when it is opened: %v", path, err, opened)
		}
		if opened == nil {
			files.Release(l)
		}
		_ = os.Remove(filepath.Join(dir, "new"))
	}
}
