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

// Options are how a log is written. The zero value has every line in the file within some milliseconds.
type Options struct {
	Buffer int           // bytes gathered before they are written; 0: what comes within gather goes in one write
	Flush  time.Duration // and for so long at most; 0: no limit
}

// Without a buffer lines wait for so long, or until they are so many bytes: a write for each line, and the wake-up for it,
// would cost more than all the rest of a small request.
const (
	gather     = 5 * time.Millisecond
	gatherMost = 64 << 10
)

// limits are the options as they are kept to.
func (o Options) limits() (bytes int, wait time.Duration) {
	if o.Buffer == 0 {
		return gatherMost, gather
	}
	return o.Buffer, o.Flush
}

// pending bounds what waits in memory for a file that takes nothing, in bytes beside the buffer.
const pending = 4 << 20

// Log is a file with the options of one that writes to it. It is safe for concurrent use.
type Log struct {
	file    *file
	options Options
}

// file is what all logs of one path write to.
type file struct {
	path    string
	now     bool // no goroutine: Write writes
	dropped atomic.Int64
	failed  atomic.Int64

	mu      sync.Mutex
	waiting []byte
	timer   *time.Timer   // of flush; nil: none was needed yet
	timed   time.Duration // what it was set to; 0: it does not run
	buffer  int           // the largest of all options so far
	holders int           // guarded by Files.mu
	closed  bool

	wake chan struct{} // one slot: there is something to do
	done chan struct{}

	out    io.WriteCloser // of the goroutine
	torn   bool           // its last line is not whole; of the goroutine
	again  atomic.Bool    // open the file anew after what waits
	spare  []byte         // of the goroutine
	opener func(path string) (io.WriteCloser, error)
}

var errClosed = errors.New("the log is closed")

// open starts a file.
func open(path string, opener func(string) (io.WriteCloser, error), now bool) (*file, error) {
	out, err := opener(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, now: now, out: out, opener: opener, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if !now {
		go f.run()
	}
	return f, nil
}

// Write takes a line, which must end in a newline, and does not wait for it to be written. It always takes it whole or,
// when too much waits already, not at all: the line is dropped and counted. What waits is written with the first line
// that has no buffer, or is too much for its own.
func (l *Log) Write(line []byte) (int, error) { return l.file.take(line, l.options) }

// Reopen makes the next write go to whatever file has the log's name then; what waits in a buffer is written first.
func (l *Log) Reopen() { l.file.reopenNext() }

// Dropped is the number of lines of the file that were not taken because too much waited already.
func (l *Log) Dropped() int64 { return l.file.dropped.Load() }

// Failed is the number of writes, each of one line or more, that the file did not take.
func (l *Log) Failed() int64 { return l.file.failed.Load() }

func (f *file) take(line []byte, o Options) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, errClosed
	}
	if f.now {
		if _, err := f.out.Write(line); err != nil {
			f.failed.Add(1)
		}
		return len(line), nil
	}
	if len(f.waiting)+len(line) > f.buffer+pending {
		f.dropped.Add(1)
		return len(line), nil
	}
	f.waiting = append(f.waiting, line...)
	switch most, wait := o.limits(); {
	case len(f.waiting) >= most:
		f.rouse()
	case wait > 0 && (f.timed == 0 || wait < f.timed):
		f.timed = wait
		if f.timer == nil {
			f.timer = time.AfterFunc(wait, f.flush)
		} else {
			f.timer.Reset(wait)
		}
	}
	return len(line), nil
}

// flush is what a timer of take does.
func (f *file) flush() {
	f.mu.Lock()
	f.timed = 0
	f.mu.Unlock()
	f.rouse()
}

func (f *file) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *file) reopenNext() {
	f.again.Store(true)
	f.rouse()
}

func (f *file) run() {
	defer close(f.done)
	for range f.wake {
		again := f.again.Swap(false)
		closed := f.put()
		if again {
			f.reopen()
		}
		if closed {
			_ = f.out.Close()
			return
		}
	}
}

// put writes what waits.
func (f *file) put() (closed bool) {
	f.mu.Lock()
	text := f.waiting
	f.waiting = f.spare[:0]
	closed = f.closed
	usual := 2*f.buffer + 2*gatherMost
	f.mu.Unlock()
	if len(text) > 0 {
		f.write(text)
	}
	if f.spare = text; cap(f.spare) > usual {
		f.spare = nil
	}
	return closed
}

// write gives lines to the file. Behind a line that a full disk cut off they begin on one of their own.
func (f *file) write(text []byte) {
	if f.torn {
		text = append([]byte("\n"), text...)
	}
	n, err := f.out.Write(text)
	if n > 0 {
		f.torn = text[n-1] != '\n'
	}
	if err != nil {
		f.failed.Add(1)
	}
}

// reopen opens the file anew. When that fails the old one is kept, and it is tried again after the next lines.
func (f *file) reopen() {
	out, err := f.opener(f.path)
	if err != nil {
		f.failed.Add(1)
		f.again.Store(true)
		return
	}
	_ = f.out.Close()
	f.out, f.torn = out, false
}

// patience is how long close waits for a file that takes nothing.
const patience = 5 * time.Second

// close writes what waits and ends the goroutine; it does not wait longer than patience for either.
func (f *file) close() {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	f.mu.Unlock()
	if f.now {
		_ = f.out.Close()
		return
	}
	f.rouse()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-f.done:
	case <-enough.C:
	}
}

// openFile opens a log's file for appending. The standard streams are used as they are, pipes included. Another pipe is
// refused: to open it, or to write to it, can wait for ever for a reader.
func openFile(path string) (io.WriteCloser, error) {
	if f := standard(path); f != nil {
		return stream{f}, nil
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
	if err == nil && !isLog(info) {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// standard is the standard stream that a path names; nil: it names none.
func standard(path string) *os.File {
	switch path {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return os.Stdout
	case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
		return os.Stderr
	}
	return nil
}

// isLog reports whether it is what lines can be appended to.
func isLog(info os.FileInfo) bool {
	return info.Mode().IsRegular() || info.Mode()&os.ModeCharDevice != 0
}

// stream is a file that is not ours to close.
type stream struct{ io.Writer }

func (stream) Close() error { return nil }
