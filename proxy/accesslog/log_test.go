package accesslog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a file system of one file that can be blocked or broken.
type shelf struct {
	mu     sync.Mutex
	opened int
	closed int
	text   strings.Builder
	writes int
	err    error
	block  chan struct{} // nil: writes don't wait
}

func (s *shelf) open(string) (io.WriteCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

func (s *shelf) Write(b []byte) (int, error) {
	if s.block != nil {
		<-s.block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.writes++
	return s.text.Write(b)
}

func (s *shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *shelf) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// logOn opens a log on a shelf, in a bubble of time.
func logOn(t *testing.T, o Options, test func(t *testing.T, l *Log, s *shelf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		files := &Files{Opener: s.open}
		l, err := files.Acquire("access.log", o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, l, s)
		files.Release(l)
		if s.opened != s.closed {
			t.Errorf("opened %d times, closed %d times", s.opened, s.closed)
		}
	})
}

// settle waits for what a log without a buffer gathers.
func settle() {
	time.Sleep(gather)
	synctest.Wait()
}

func write(t *testing.T, l *Log, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("write %q: %d, %v", line, n, err)
		}
	}
}

// TestUnbufferedIsThereSoon: what comes close together is one write.
func TestUnbufferedIsThereSoon(t *testing.T) {
	logOn(t, Options{}, func(t *testing.T, l *Log, s *shelf) {
		write(t, l, "a\n", "b\n")
		time.Sleep(gather)
		synctest.Wait()
		write(t, l, "c\n")
		time.Sleep(gather)
		synctest.Wait()
		if got := s.String(); got != "a\nb\nc\n" || s.writes != 2 {
			t.Errorf("%q in %d writes", got, s.writes)
		}
		write(t, l, strings.Repeat("d", gatherMost)+"\n")
		synctest.Wait()
		if s.writes != 3 {
			t.Error("many lines waited for the timer")
		}
	})
}

func TestBuffer(t *testing.T) {
	logOn(t, Options{Buffer: 6, Flush: time.Second}, func(t *testing.T, l *Log, s *shelf) {
		write(t, l, "a\n", "b\n")
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if got := s.String(); got != "" {
			t.Errorf("before it is full or old: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := s.String(); got != "a\nb\n" {
			t.Errorf("when it is old: %q", got)
		}
		write(t, l, "c\n", "d\n", "e\n")
		synctest.Wait()
		if got := s.String(); got != "a\nb\nc\nd\ne\n" || s.writes != 2 {
			t.Errorf("when it is full: %q in %d writes", got, s.writes)
		}
	})
}

func TestReleaseWritesTheRest(t *testing.T) {
	s := &shelf{}
	files := &Files{Opener: s.open}
	one, err := files.Acquire("access.log", Options{Buffer: 100})
	if err != nil {
		t.Fatal(err)
	}
	two, err := files.Acquire("access.log", Options{})
	if err != nil || one.file != two.file {
		t.Fatal("one path, one file")
	}
	write(t, one, "a\n")
	files.Release(one)
	if s.closed != 0 {
		t.Fatal("closed while somebody holds it")
	}
	files.Release(two)
	if got := s.String(); got != "a\n" || s.closed != 1 {
		t.Errorf("%q, closed %d times", got, s.closed)
	}
	if _, err := one.Write([]byte("b\n")); err == nil {
		t.Error("a closed log takes lines")
	}
}

// TestBlockedFile: requests go on, up to what fits into memory; what does not is counted.
func TestBlockedFile(t *testing.T) {
	logOn(t, Options{}, func(t *testing.T, l *Log, s *shelf) {
		s.block = make(chan struct{})
		line := strings.Repeat("x", 1<<20-1) + "\n"
		write(t, l, line) // is being written
		synctest.Wait()
		for range pending / len(line) {
			write(t, l, line)
		}
		if n := l.Dropped(); n != 0 {
			t.Errorf("%d lines dropped while there is room", n)
		}
		write(t, l, line, line)
		if n := l.Dropped(); n != 2 {
			t.Errorf("%d lines dropped, want 2", n)
		}
		close(s.block)
		synctest.Wait()
		if got := len(s.String()); got != 5<<20 {
			t.Errorf("%d bytes, want 5 MiB", got)
		}
	})
}

func TestBrokenFileIsTriedAgain(t *testing.T) {
	logOn(t, Options{}, func(t *testing.T, l *Log, s *shelf) {
		s.fail(errors.New("disk full"))
		write(t, l, "a\n")
		settle()
		l.Reopen()
		settle()
		if n := l.Failed(); n != 2 {
			t.Errorf("%d failures, want those of the write and of opening", n)
		}
		s.fail(nil)
		s.closed++ // the open that failed has nothing to close
		write(t, l, "b\n")
		settle()
		if got := s.String(); got != "b\n" {
			t.Errorf("%q", got)
		}
	})
}

// tight is a disk with room for so many bytes.
type tight struct {
	shelf
	room int
}

func (d *tight) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	_, _ = d.shelf.Write(b[:n])
	if n < len(b) {
		return n, errors.New("disk full")
	}
	return n, nil
}

// TestLineThatDidNotFit: no other line is taken for the rest of it.
func TestLineThatDidNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &tight{room: 5}
		files := &Files{Opener: func(string) (io.WriteCloser, error) { return d, nil }}
		l, err := files.Acquire("access.log", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			line string
			room int
		}{{"abc\n", 5}, {"cut\n", 1}, {"lost\n", 0}, {"whole\n", 100}, {"next\n", 100}} {
			d.room = step.room
			write(t, l, step.line)
			settle()
		}
		files.Release(l)
		if got := d.String(); got != "abc\nc\nwhole\nnext\n" || l.Failed() != 2 {
			t.Errorf("%q, %d failures", got, l.Failed())
		}
	})
}

// TestReopenThatFails loses no line: the old file takes them until there is a new one.
func TestReopenThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := &shelf{}, &shelf{}
		var next io.WriteCloser = before
		files := &Files{Opener: func(string) (io.WriteCloser, error) {
			if next == nil {
				return nil, errors.New("no such folder")
			}
			return next, nil
		}}
		l, err := files.Acquire("access.log", Options{})
		if err != nil {
			t.Fatal(err)
		}
		next = nil
		l.Reopen()
		settle()
		write(t, l, "a\n")
		settle()
		next = after
		write(t, l, "b\n")
		settle()
		write(t, l, "c\n")
		files.Release(l)
		if before.String() != "a\nb\n" || after.String() != "c\n" || l.Failed() != 2 || before.closed != 1 {
			t.Errorf("%q, then %q; %d failures, closed %d times", before, after, l.Failed(), before.closed)
		}
	})
}

func TestReopenFollowsTheName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	files := &Files{}
	l, err := files.Acquire(path, Options{Buffer: 100})
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, "old\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	files.Reopen()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	write(t, l, "new\n")
	files.Release(l)
	for name, want := range map[string]string{path + ".1": "old\n", path: "new\n"} {
		if got, err := os.ReadFile(name); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", filepath.Base(name), got, err, want)
		}
	}
	if dropped, failed := files.Counts(); dropped+failed != 0 {
		t.Errorf("%d dropped, %d failed", dropped, failed)
	}
}

func TestUnopenableFile(t *testing.T) {
	files := &Files{}
	if _, err := files.Acquire(filepath.Join(t.TempDir(), "none", "access.log"), Options{}); err == nil {
		t.Error("a log in a folder that is not there")
	}
	l, err := files.Acquire("/dev/stderr", Options{})
	if err != nil {
		t.Fatal(err)
	}
	files.Release(l)
	if _, err := os.Stderr.Stat(); err != nil {
		t.Errorf("the stream was closed: %v", err)
	}
}

func TestNow(t *testing.T) {
	s := &shelf{}
	files := &Files{Opener: s.open, Now: true}
	l, err := files.Acquire("access.log", Options{Buffer: 100})
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, "a\n")
	if got := s.String(); got != "a\n" {
		t.Errorf("%q", got)
	}
	l.Reopen()
	files.Release(l)
	if s.opened != 1 || s.closed != 1 {
		t.Errorf("opened %d times, closed %d times", s.opened, s.closed)
	}
}

func TestConcurrentWriters(t *testing.T) {
	s := &shelf{}
	files := &Files{Opener: s.open}
	l, err := files.Acquire("access.log", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				write(t, l, fmt.Sprintf("%d %d\n", w, i))
			}
		})
	}
	wg.Wait()
	files.Release(l)
	next := [4]int{}
	for line := range strings.Lines(s.String()) {
		var w, i int
		if _, err := fmt.Sscanf(line, "%d %d\n", &w, &i); err != nil || next[w] != i {
			t.Fatalf("line %q, want number %d of its writer (%v)", line, next[w], err)
		}
		next[w]++
	}
	if next != [4]int{200, 200, 200, 200} {
		t.Errorf("%v lines", next)
	}
}

func BenchmarkWrite(b *testing.B) {
	files := &Files{}
	l, err := files.Acquire(filepath.Join(b.TempDir(), "access.log"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer files.Release(l)
	line := []byte(strings.Repeat("x", 149) + "\n")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Write(line)
	}
}

// Logs of one path share its file, each with options of its own: those of a configuration that was read again count at once.
func TestOptionsAreEachLogsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		files := &Files{Opener: s.open}
		slow, err := files.Acquire("access.log", Options{Buffer: 1 << 20, Flush: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		quick, err := files.Acquire("access.log", Options{})
		if err != nil || s.opened != 1 {
			t.Fatal(err, s.opened)
		}
		write(t, slow, "a\n")
		settle()
		if got := s.String(); got != "" {
			t.Errorf("with a buffer: %q", got)
		}
		write(t, quick, "b\n")
		settle()
		if got := s.String(); got != "a\nb\n" {
			t.Errorf("without: %q", got)
		}
		files.Release(slow)
		write(t, quick, "c\n")
		files.Release(quick)
		if got := s.String(); got != "a\nb\nc\n" || s.closed != 1 {
			t.Errorf("%q, closed %d times", got, s.closed)
		}
	})
}

// TestCountsStay: what was lost in a file stays counted when the last one who wrote to it is gone.
func TestCountsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		files := &Files{Opener: s.open}
		l, err := files.Acquire("access.log", Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.fail(errors.New("full"))
		write(t, l, "a\n")
		settle()
		files.Release(l)
		if _, failed := files.Counts(); failed != 1 {
			t.Errorf("%d failed", failed)
		}
	})
}
