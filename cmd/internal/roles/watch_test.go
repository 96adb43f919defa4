package roles

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestWatcher(t *testing.T) {
	read := time.Now().Add(-time.Hour)
	before := read.Add(-time.Hour)
	for name, c := range map[string]struct {
		change func(t *testing.T, dir, file string)
		want   []bool // of the looks that follow
	}{
		"nothing":                   {func(*testing.T, string, string) {}, []bool{false, false}},
		"written":                   {func(t *testing.T, _, file string) { write(t, file, "abc", time.Now()) }, []bool{false, true}},
		"written with the old time": {func(t *testing.T, _, file string) { write(t, file, "longer", before) }, []bool{false, true}},
		"another file of the same size and time": {func(t *testing.T, dir, file string) {
			write(t, file+".new", "abc", before)
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(dir, before, before); err != nil {
				t.Fatal(err)
			}
		}, []bool{false, true}},
		"removed": {func(t *testing.T, _, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, []bool{false, true}},
		"another file in the folder": {func(t *testing.T, dir, _ string) {
			write(t, filepath.Join(dir, "new.conf"), "x", time.Now())
			now := time.Now()
			if err := os.Chtimes(dir, now, now); err != nil {
				t.Fatal(err)
			}
		}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "a.conf")
			write(t, file, "xyz", before)
			if err := os.Chtimes(dir, before, before); err != nil {
				t.Fatal(err)
			}
			files, w := []string{file, dir}, watcher{}
			w.look(files, read)
			c.change(t, dir, file)
			for i, want := range c.want {
				if got := w.changed(files); got != want {
					t.Errorf("look %d: %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

// A file that is still being written is not read.
func TestWatcherWaitsUntilAChangeHasSettled(t *testing.T) {
	read := time.Now().Add(-time.Hour)
	file := filepath.Join(t.TempDir(), "a.conf")
	write(t, file, "x", read.Add(-time.Minute))
	w := watcher{}
	w.look([]string{file}, read)
	for i := range 3 {
		write(t, file, "growing"[:i+2], read.Add(time.Duration(i)*time.Second))
		if w.changed([]string{file}) {
			t.Fatal("read while it grew")
		}
	}
	if !w.changed([]string{file}) {
		t.Error("not read when it was whole")
	}
}

// What was written while the files were read may be missing in what was read.
func TestWatcherSeesWhatWasWrittenWhileReading(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.conf")
	began := time.Now().Add(-time.Second)
	for what, at := range map[string]time.Time{"well after": time.Now(), "at once, by a clock that is behind": began.Add(-5 * time.Millisecond)} {
		write(t, file, "x", at)
		w := watcher{}
		w.look([]string{file}, began)
		if w.changed([]string{file}) || !w.changed([]string{file}) {
			t.Errorf("%s: want a change, settled at the second look", what)
		}
	}
}
