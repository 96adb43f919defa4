package accesslog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options are how a log is written. The zero value writes every line at once.
type Options struct {
	Buffer int           // bytes gathered before they are written; 0: none
	Flush  time.Duration // and for so long at most; 0: no limit
}

// pending bounds what waits in memory for a file that takes nothing, in bytes beside the buffer.
const pending = 4 << 20

// Log is one file. It is safe for concurrent use.
type Log struct {
	path    string
	options Options
	now     bool // no goroutine: Write writes
	dropped atomic.Int64
	failed  atomic.Int64

	mu      sync.Mutex
	waiting []byte
	timed   bool // a timer of flush runs
	holders int  // guarded by Files.mu
	closed  bool

	wake chan struct{} // one slot: there is something to do
	done chan struct{}

	file   io.WriteCloser // of the goroutine
	torn   bool           // its last line is not whole; of the goroutine
	again  atomic.Bool    // open the file anew after what waits
	spare  []byte         // of the goroutine
	opener func(path string) (io.WriteCloser, error)
}

var errClosed = errors.New("the log is closed")

// open starts a log.
func open(path string, o Options, opener func(string) (io.WriteCloser, error), now bool) (*Log, error) {
	file, err := opener(path)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, options: o, now: now, file: file, opener: opener, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if !now {
		go l.run()
	}
	return l, nil
}

// Write takes a line, which must end in a newline, and does not wait for it to be written. It always takes it whole or,
// when too much waits already, not at all: the line is dropped and counted.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errClosed
	}
	if l.now {
		if _, err := l.file.Write(line); err != nil {
			l.failed.Add(1)
		}
		return len(line), nil
	}
	if len(l.waiting)+len(line) > l.options.Buffer+pending {
		l.dropped.Add(1)
		return len(line), nil
	}
	l.waiting = append(l.waiting, line...)
	switch {
	case len(l.waiting) >= l.options.Buffer:
		l.rouse()
	case l.options.Flush > 0 && !l.timed:
		l.timed = true
		time.AfterFunc(l.options.Flush, l.flush)
	}
	return len(line), nil
}

// flush is what a timer of Write does.
func (l *Log) flush() {
	l.mu.Lock()
	l.timed = false
	l.mu.Unlock()
	l.rouse()
}

func (l *Log) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Reopen makes the next write go to whatever file has the log's name then; what waits in a buffer is written first.
func (l *Log) Reopen() {
	l.again.Store(true)
	l.rouse()
}

// Dropped is the number of lines that were not taken because too much waited already.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Failed is the number of writes, each of one line or more, that the file did not take.
func (l *Log) Failed() int64 { return l.failed.Load() }

func (l *Log) run() {
	defer close(l.done)
	for range l.wake {
		again := l.again.Swap(false)
		closed := l.put()
		if again {
			l.reopen()
		}
		if closed {
			_ = l.file.Close()
			return
		}
	}
}

// put writes what waits.
func (l *Log) put() (closed bool) {
	l.mu.Lock()
	text := l.waiting
	l.waiting = l.spare[:0]
	closed = l.closed
	l.mu.Unlock()
	if len(text) > 0 {
		l.write(text)
	}
	if l.spare = text; cap(l.spare) > 2*l.options.Buffer+64<<10 {
		l.spare = nil
	}
	return closed
}

// write gives lines to the file. Behind a line that a full disk cut off they begin on one of their own.
func (l *Log) write(text []byte) {
	if l.torn {
		text = append([]byte("\n"), text...)
	}
	n, err := l.file.Write(text)
	if n > 0 {
		l.torn = text[n-1] != '\n'
	}
	if err != nil {
		l.failed.Add(1)
	}
}

// reopen opens the file anew. When that fails the old one is kept, and it is tried again after the next lines.
func (l *Log) reopen() {
	file, err := l.opener(l.path)
	if err != nil {
		l.failed.Add(1)
		l.again.Store(true)
		return
	}
	_ = l.file.Close()
	l.file, l.torn = file, false
}

// patience is how long close waits for a file that takes nothing.
const patience = 5 * time.Second

// close writes what waits and ends the goroutine; it does not wait longer than patience for either.
func (l *Log) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if l.now {
		_ = l.file.Close()
		return
	}
	l.rouse()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-l.done:
	case <-enough.C:
	}
}

// openFile opens a log's file for appending. The standard streams are used as they are, pipes included. Another pipe is
// refused: to open it, or to write to it, can wait for ever for a reader.
func openFile(path string) (io.WriteCloser, error) {
	switch path {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return stream{os.Stdout}, nil
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return stream{os.Stderr}, nil
	}
	// With O_NONBLOCK a pipe without a reader is an error at once; on files it has no effect.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o644)
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeCharDevice == 0 {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// stream is a file that is not ours to close.
type stream struct{ io.Writer }

func (stream) Close() error { return nil }
