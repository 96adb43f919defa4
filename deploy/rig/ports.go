package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports below the range from which systems take the local ports of outgoing connections: one that is free now stays
// free until its server binds it, also over a restart of that server.
const (
	lowestPort  = 15000
	highestPort = 31999
)

var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// FreePort returns a port on 127.0.0.1 that nobody listens on and that this process has not handed out before, so that
// no two worlds ever meet on one address.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if ports.taken[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		ports.taken[port] = true
		return port, l.Close()
	}
	return 0, fmt.Errorf("rig: no free port between %d and %d", lowestPort, highestPort)
}

// FreeAddr is FreePort as 127.0.0.1:port.
func FreeAddr() (string, error) {
	port, err := FreePort()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
}
