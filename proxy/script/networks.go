package script

import "net/netip"

// Networks finds a value by an address: that of the smallest network which has it. The zero value is empty. Looking up is
// safe for concurrent use once nothing is written.
type Networks[T any] struct {
	values map[netip.Prefix]T
	v4, v6 [129]int // how many networks have that many bits
}

// Set gives a network a value. One that it had is replaced. Bits of the address beyond the network's don't count.
func (n *Networks[T]) Set(net netip.Prefix, v T) {
	net = net.Masked()
	if _, there := n.values[net]; !there {
		n.lengths(net.Addr())[net.Bits()]++
	}
	if n.values == nil {
		n.values = map[netip.Prefix]T{}
	}
	n.values[net] = v
}

// Delete takes a network out, and not those inside it.
func (n *Networks[T]) Delete(net netip.Prefix) {
	net = net.Masked()
	if _, there := n.values[net]; there {
		n.lengths(net.Addr())[net.Bits()]--
		delete(n.values, net)
	}
}

// Find looks an address up; an IPv4 address that is written as IPv6 counts as IPv4.
func (n *Networks[T]) Find(a netip.Addr) (v T, ok bool) {
	a = a.Unmap().WithZone("")
	lengths := n.lengths(a)
	for bits := a.BitLen(); bits >= 0; bits-- {
		if lengths[bits] == 0 {
			continue
		}
		net, err := a.Prefix(bits)
		if err != nil { // not an address
			return v, false
		}
		if v, ok = n.values[net]; ok {
			return v, true
		}
	}
	return v, false
}

func (n *Networks[T]) lengths(a netip.Addr) *[129]int {
	if a.Is4() {
		return &n.v4
	}
	return &n.v6
}
