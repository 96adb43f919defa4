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
// are. A path that is neither a file nor a device, nor one of the standard streams, is an error.
func (f *Files) Acquire(path string, o Options) (*Log, error) {
	if l := f.hold(path, nil); l != nil {
		return l, nil
	}
	opener := f.Opener
	if opener == nil {
		opener = openFile
	}
	made, err := open(path, o, opener, f.Now) // without the lock: a disk may take its time
	if err != nil {
		return nil, fmt.Errorf("open the access log: %w", err)
	}
	l := f.hold(path, made)
	if l != made { // somebody was faster
		made.close()
	}
	return l, nil
}

// hold counts one more holder of a path's log, which is otherwise when there is none; nil: it stays at none.
func (f *Files) hold(path string, otherwise *Log) *Log {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.logs[path]
	if l == nil {
		if l = otherwise; l == nil {
			return nil
		}
		if f.logs == nil {
			f.logs = map[string]*Log{}
		}
		f.logs[path] = l
	}
	l.holders++
	return l
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
