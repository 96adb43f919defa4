package roles

import (
	"maps"
	"os"
	"syscall"
	"time"
)

// watcher notices that files changed. A file that is being written is not whole yet, so a change counts when the files
// have looked the same twice.
type watcher struct {
	known   map[string]stamp // as they were read
	pending map[string]stamp // another look that they have since; nil: none
}

// stamp is what is looked at of a file or folder.
type stamp struct {
	time time.Time
	size int64
	kind os.FileMode // 0 and no time: it is not there
	dev  uint64      // with node: another file may have come in its place, or behind its link, that looks the same
	node uint64
}

// behind is how far the times of files may be behind the clock: systems take them from the last tick of a coarser one.
const behind = 20 * time.Millisecond

// look notes how files are that were read since a moment. One that was written after it may have been read before: it
// counts as changed.
func (w *watcher) look(files []string, since time.Time) {
	w.known, w.pending = stamps(files), nil
	for file, s := range w.known {
		if s.time.After(since.Add(-behind)) {
			w.known[file] = stamp{size: -1}
		}
	}
}

// changed looks again, and reports a change that has settled.
func (w *watcher) changed(files []string) bool {
	now := stamps(files)
	if maps.Equal(now, w.known) {
		w.pending = nil
		return false
	}
	if w.pending != nil && maps.Equal(now, w.pending) {
		return true
	}
	w.pending = now
	return false
}

func stamps(files []string) map[string]stamp {
	all := make(map[string]stamp, len(files))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			all[file] = stamp{}
			continue
		}
		s := stamp{time: info.ModTime(), kind: info.Mode().Type()}
		if !info.IsDir() {
			s.size = info.Size()
		}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			s.dev, s.node = uint64(sys.Dev), sys.Ino //nolint:unconvert // not everywhere of the same type
		}
		all[file] = s
	}
	return all
}
