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
	logs map[string]*file

	dropped, failed int64 // of files that are closed
}

// Acquire gives the log of that path, and holds it until Release. Logs of one path share its file, each with options of its
// own. A path that is neither a file nor a device, nor one of the standard streams, is an error.
func (f *Files) Acquire(path string, o Options) (*Log, error) {
	if l := f.hold(path, nil, o); l != nil {
		return l, nil
	}
	opener := f.Opener
	if opener == nil {
		opener = openFile
	}
	made, err := open(path, opener, f.Now) // without the lock: a disk may take its time
	if err != nil {
		return nil, fmt.Errorf("open the access log: %w", err)
	}
	l := f.hold(path, made, o)
	if l.file != made { // somebody was faster
		made.close()
	}
	return l, nil
}

// hold counts one more holder of a path's file, which is otherwise when there is none; nil: it stays at none.
func (f *Files) hold(path string, otherwise *file, o Options) *Log {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.logs[path]
	if at == nil {
		if at = otherwise; at == nil {
			return nil
		}
		if f.logs == nil {
			f.logs = map[string]*file{}
		}
		f.logs[path] = at
	}
	at.holders++
	at.mu.Lock()
	at.buffer = max(at.buffer, o.Buffer)
	at.mu.Unlock()
	return &Log{at, o}
}

// Release lets a log go. With its last holder the file is written out and closed.
func (f *Files) Release(l *Log) {
	at := l.file
	f.mu.Lock()
	at.holders--
	last := at.holders == 0
	if last {
		delete(f.logs, at.path)
	}
	f.mu.Unlock()
	if !last {
		return
	}
	at.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped += at.dropped.Load()
	f.failed += at.failed.Load()
}

// Reopen is Log.Reopen of all. It gives the number of files, without the standard streams.
func (f *Files) Reopen() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.logs {
		at.reopenNext()
		if standard(at.path) == nil {
			n++
		}
	}
	return n
}

// Counts are the lines dropped and the writes failed of all logs so far. While a log is being closed its own are missing.
func (f *Files) Counts() (dropped, failed int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dropped, failed = f.dropped, f.failed
	for _, at := range f.logs {
		dropped += at.dropped.Load()
		failed += at.failed.Load()
	}
	return dropped, failed
}
