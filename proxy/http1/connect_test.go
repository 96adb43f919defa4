package http1

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestNoSocketIsNotThePeersFault: what this host lacks is told apart from what a peer does.
func TestNoSocketIsNotThePeersFault(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
	}
	for errno, ours := range map[syscall.Errno]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOMEM: true, syscall.ENOBUFS: true,
		syscall.ECONNREFUSED: false, syscall.EHOSTUNREACH: false, syscall.EADDRNOTAVAIL: false, syscall.ETIMEDOUT: false,
	} {
		if got := isOurs(dial(errno)); got != ours {
			t.Errorf("%v: %v", errno, got)
		}
	}
}

// TestNoDescriptorsLeft takes the last descriptor away, for real.
func TestNoDescriptorsLeft(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: "127.0.0.1:9"})
	warm := ps.Open(t.Context(), p, true) // the poller has what it needs
	_ = warm.Send(get())
	warm.Close()
	var before, none syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none = before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Skip("the limit can't be set: ", err)
	}
	b := ps.Open(t.Context(), p, true)
	err := b.Send(get())
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err == nil || classOf(t, err) != forward.NoSocket {
		t.Errorf("%v", err)
	}
	b.Close()
}
