package heartbeat

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// OutgoingIP is this machine's address on the way towards another (host:port): the address under which whoever lives
// there most likely reaches us, and so a fair default for a beat's ip when the brokers and the proxies share a network.
// Behind NAT, or with a broker on the machine itself (the answer is then a loopback address), say the ip yourself.
// Nothing is sent but a name lookup.
func OutgoingIP(ctx context.Context, towards string) (string, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", towards) // of a datagram socket this only chooses the route
	if err != nil {
		return "", fmt.Errorf("find the outgoing address towards %s: %w", towards, err)
	}
	defer c.Close()
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return "", fmt.Errorf("find the outgoing address towards %s: %w", towards, err)
	}
	ip, ok := canonicalIP(local.Addr().String())
	if !ok {
		return "", fmt.Errorf("the outgoing address towards %s is %s, which can't be reached from elsewhere", towards, local.Addr())
	}
	return ip, nil
}
