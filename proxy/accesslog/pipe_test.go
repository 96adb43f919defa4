//go:build linux

package accesslog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPipeIsNoLog(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(when string) {
		done := make(chan error, 1)
		go func() {
			_, err := (&Files{}).Acquire(pipe, Options{})
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "pipe is no file") {
				t.Errorf("%s: %v", when, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal(when + ": no end")
		}
	}
	refused("without a reader")
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	refused("with one")
	for _, name := range []string{"/dev/null", "/dev/stdout", "/dev/stderr", filepath.Join(dir, "file")} {
		files := &Files{}
		l, err := files.Acquire(name, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		files.Release(l)
	}
}

// TestASlowDiskHoldsUpNoOtherLog: neither to open a log nor to close it.
func TestASlowDiskHoldsUpNoOtherLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opening, fast := make(chan struct{}), &shelf{}
		files := &Files{Opener: func(path string) (io.WriteCloser, error) {
			if path == "slow" {
				<-opening
			}
			return fast.open(path)
		}}
		got := make(chan *Log, 2)
		for range 2 {
			go func() {
				l, err := files.Acquire("slow", Options{})
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
		}
		synctest.Wait()
		l, err := files.Acquire("fast", Options{})
		if err != nil {
			t.Fatal(err)
		}
		files.Release(l)
		close(opening)
		one, two := <-got, <-got
		if one.file != two.file {
			t.Error("two logs of one file")
		}
		files.Release(one)
		files.Release(two)
		if fast.opened != fast.closed {
			t.Errorf("%d opened, %d closed", fast.opened, fast.closed)
		}

		stuck := &shelf{block: make(chan struct{})}
		files = &Files{Opener: stuck.open}
		if l, err = files.Acquire("stuck", Options{}); err != nil {
			t.Fatal(err)
		}
		_, _ = l.Write([]byte("x\n"))
		began := time.Now()
		files.Release(l)
		if took := time.Since(began); took != patience {
			t.Errorf("closing took %v", took)
		}
		close(stuck.block)
		<-l.file.done
	})
}
