package accesslog

import (
	"fmt"
	"io"
	"sync"
)

// Files holds the logs that are open, one for each path, so that several directives and several generations of a
// configuration write into one. The zero value is ready. It is safe for concurrent use.
type Files struct {
	// Opener opens a log's file; nil: the file system's, for appending.
	Opener func(path string) (io.WriteCloser, error)
	// Now makes every Write go to its file before it returns, whatever a log's options are: for tests and simulations.
	Now bool

	mu   sync.Mutex
	logs map[string]*Log
}

// Acquire gives the log of that path, and holds it until Release. Options of a log that is open already stay as they
// are.
func (f *Files) Acquire(path string, o Options) (*Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.logs[path]
	if l == nil {
		opener := f.Opener
		if opener == nil {
			opener = openFile
		}
		var err error
		if l, err = open(path, o, opener, f.Now); err != nil {
			return nil, fmt.Errorf("open the access log: %w", err)
		}
		if f.logs == nil {
			f.logs = map[string]*Log{}
		}
		f.logs[path] = l
	}
	l.holders++
	return l, nil
}

// Release lets a log go. With its last holder it is written out and closed.
func (f *Files) Release(l *Log) {
	f.mu.Lock()
	l.holders--
	last := l.holders == 0
	if last {
		delete(f.logs, l.path)
	}
	f.mu.Unlock()
	if last {
		l.close()
	}
}

// Reopen is Log.Reopen of all.
func (f *Files) Reopen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.logs {
		l.Reopen()
	}
}

// Counts are the lines dropped and the writes failed of all logs that are open.
func (f *Files) Counts() (dropped, failed int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.logs {
		dropped += l.Dropped()
		failed += l.Failed()
	}
	return dropped, failed
}
