package socket

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	one, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	two, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close(); _ = two.Close() })
	return one.(*net.TCPConn), two.(*net.TCPConn)
}

// on runs f with a connection's descriptor.
func on(t testing.TB, c *net.TCPConn, f func(fd uintptr)) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(f); err != nil {
		t.Fatal(err)
	}
}

func TestCalls(t *testing.T) {
	a, b := pair(t)
	buf := make([]byte, 16)
	on(t, a, func(fd uintptr) {
		if n, err := Read(fd, buf); n != 0 || !errors.Is(err, unix.EAGAIN) {
			t.Errorf("nothing there: %d, %v", n, err)
		}
		if News(fd) {
			t.Error("news without any")
		}
	})
	on(t, b, func(fd uintptr) {
		if n, err := Write(fd, []byte("abc")); n != 3 || err != nil {
			t.Errorf("write: %d, %v", n, err)
		}
		if n, err := WriteBoth(fd, []byte("de"), []byte("f")); n != 3 || err != nil {
			t.Errorf("write both: %d, %v", n, err)
		}
	})
	await(t, a)
	on(t, a, func(fd uintptr) {
		if n, err := Read(fd, buf); string(buf[:n]) != "abcdef" || err != nil {
			t.Errorf("%q, %v", buf[:n], err)
		}
	})
	_ = b.Close()
	await(t, a)
	on(t, a, func(fd uintptr) {
		if n, err := Read(fd, buf); n != 0 || err != nil {
			t.Errorf("at the end: %d, %v", n, err)
		}
	})
}

// await waits for news.
func await(t testing.TB, c *net.TCPConn) {
	t.Helper()
	news := false
	for end := time.Now().Add(5 * time.Second); !news && time.Now().Before(end); time.Sleep(time.Millisecond) {
		on(t, c, func(fd uintptr) { news = News(fd) })
	}
	if !news {
		t.Fatal("no news in 5 s")
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector is told by other calls")
	}
	a, b := pair(t)
	one, two, buf := []byte("abc"), []byte("def"), make([]byte, 16)
	var from, to uintptr
	on(t, b, func(fd uintptr) { from = fd })
	on(t, a, func(fd uintptr) { to = fd })
	if n := testing.AllocsPerRun(50, func() {
		_, _ = Write(from, one)
		_, _ = WriteBoth(from, one, two)
		_, _ = Read(to, buf)
		_ = News(to)
		_, _ = Read(to, buf)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
