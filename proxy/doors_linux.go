package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func reusePort(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	if err != nil {
		return err
	}
	return set
}

// hearNoMore has the kernel drop what would begin another connection to a listening socket; handshakes that are under
// way go on. What fails is left: it is a matter of milliseconds.
func hearNoMore(c syscall.RawConn) {
	const flags, syn, ack = 13, 0x02, 0x10 // of a TCP header
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	}
	_ = c.Control(func(fd uintptr) {
		_ = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
}

// waiting is how many connections to a listening socket nobody has accepted yet.
func waiting(c syscall.RawConn) (n int, known bool) {
	_ = c.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n, known = int(info.Unacked), true // as inet_diag has it: of a listening socket, the length of its queue
		}
	})
	return n, known
}
