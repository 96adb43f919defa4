package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports below the range from which systems take the local ports of outgoing connections: one that is free now stays
// free until its server binds it, also over a restart of that server. Each process takes a block of them for itself, since a server may
// bind its port seconds after it was chosen.
const (
	lowestPort  = 15000
	highestPort = 31999
	blockSize   = 4000
)

var ports = struct {
	sync.Mutex
	taken map[int]bool
	first int      // of our block; 0: none taken yet
	block *os.File // locked as long as this process lives
}{taken: map[int]bool{}}

// FreePort returns a port on 127.0.0.1 that nobody listens on and that was not handed out for as long as possible, so that no
// two worlds ever meet on one address.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.first == 0 {
		if err := takeBlock(); err != nil {
			return 0, err
		}
	}
	for range 20 * blockSize {
		if len(ports.taken) == blockSize { // ports of the beginning are long out of use: their worlds are gone
			clear(ports.taken)
		}
		port := ports.first + rand.IntN(blockSize)
		if ports.taken[port] {
			continue
		}
		ports.taken[port] = true
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("rig: no free port from %d to %d", ports.first, ports.first+blockSize-1)
}

// takeBlock locks a block that no other process holds. Its file stays behind, as a lock file must.
func takeBlock() error {
	blocks := rand.Perm((highestPort - lowestPort + 1) / blockSize)
	var errs []error
	for _, n := range blocks {
		f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("upstrand-rig-ports-%d.lock", n)), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			errs = append(errs, err, f.Close())
			continue
		}
		ports.first, ports.block = lowestPort+n*blockSize, f
		return nil
	}
	return fmt.Errorf("rig: no block of ports is free: %w", errors.Join(errs...))
}

// FreeAddr is FreePort as 127.0.0.1:port.
func FreeAddr() (string, error) {
	port, err := FreePort()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}
