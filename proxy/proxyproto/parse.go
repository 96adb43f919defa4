package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

// MaxHeader is the length of the longest header that is taken, in bytes. Version 1 has at most 107; one of version 2
// could have 65,551, of which nobody uses more than some hundred.
const MaxHeader = 4096

// maxLine is the longest line of version 1, with its end.
const maxLine = 107

var (
	// ErrMore says that what has come so far may begin a header.
	ErrMore = errors.New("proxyproto: the header is not whole yet")
	// ErrInvalid is wrapped by errors about what is no header.
	ErrInvalid = errors.New("proxyproto: no valid header")
)

var (
	signature = []byte("\r\n\r\n\x00\r\nQUIT\n")
	word      = []byte("PROXY ")
)

// Parse reads a header from the beginning of b. It gives its length; with ErrMore it needs more bytes, and other errors
// are final.
func Parse(b []byte) (*Info, int, error) {
	switch {
	case bytes.HasPrefix(b, signature):
		return parseBinary(b)
	case bytes.HasPrefix(b, word):
		return parseLine(b)
	case bytes.HasPrefix(signature, b), bytes.HasPrefix(word, b):
		return nil, 0, ErrMore
	}
	return nil, 0, fmt.Errorf("%w: it begins with neither version's signature", ErrInvalid)
}

// parseLine reads version 1: PROXY TCP4|TCP6 SOURCE DESTINATION PORT PORT, or PROXY UNKNOWN and anything.
func parseLine(b []byte) (*Info, int, error) {
	head := b[:min(len(b), maxLine)]
	end := bytes.IndexByte(head, '\n')
	switch {
	case end < 0 && len(head) < maxLine:
		return nil, 0, ErrMore
	case end < 0:
		return nil, 0, fmt.Errorf("%w: no end of line within %d bytes", ErrInvalid, maxLine)
	case b[end-1] != '\r':
		return nil, 0, fmt.Errorf("%w: the line ends without CR", ErrInvalid)
	}
	parts := bytes.Split(b[len(word):end-1], []byte(" "))
	info := &Info{Version: 1}
	family := string(parts[0])
	switch {
	case family == "UNKNOWN":
		return info, end + 1, nil
	case family != "TCP4" && family != "TCP6":
		return nil, 0, fmt.Errorf("%w: family %q", ErrInvalid, family)
	case len(parts) != 5:
		return nil, 0, fmt.Errorf("%w: %d words", ErrInvalid, len(parts)+1)
	}
	var ok [2]bool
	info.Source, ok[0] = textAddr(parts[1], parts[3], family == "TCP6")
	info.Destination, ok[1] = textAddr(parts[2], parts[4], family == "TCP6")
	if !ok[0] || !ok[1] {
		return nil, 0, fmt.Errorf("%w: the addresses of %q", ErrInvalid, b[:end-1])
	}
	return info, end + 1, nil
}

func textAddr(addr, port []byte, six bool) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(string(addr))
	if err != nil || a.Is6() != six || a.Zone() != "" {
		return netip.AddrPort{}, false
	}
	if len(port) == 0 || port[0] < '0' || port[0] > '9' {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(string(port), 10, 16)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), err == nil
}

// The head of version 2: signature, version and command, family and transport, length of the rest.
const (
	atCommand = 12
	atFamily  = 13
	atLength  = 14
	atRest    = 16
)

// parseBinary reads version 2.
func parseBinary(b []byte) (*Info, int, error) {
	if len(b) < atRest {
		return nil, 0, ErrMore
	}
	version, command, family := b[atCommand]>>4, b[atCommand]&15, b[atFamily]>>4
	n := atRest + int(binary.BigEndian.Uint16(b[atLength:]))
	switch {
	case version != 2:
		return nil, 0, fmt.Errorf("%w: version %d", ErrInvalid, version)
	case command > 1:
		return nil, 0, fmt.Errorf("%w: command %d", ErrInvalid, command)
	case family > 3 || b[atFamily]&15 > 2:
		return nil, 0, fmt.Errorf("%w: family and transport %#x", ErrInvalid, b[atFamily])
	case n > MaxHeader:
		return nil, 0, fmt.Errorf("%w: %d bytes, want at most %d", ErrInvalid, n, MaxHeader)
	case len(b) < n:
		return nil, 0, ErrMore
	}
	info := &Info{Version: 2}
	if command == 0 || family == 0 || b[atFamily]&15 != 1 { // LOCAL, or no stream: what follows says nothing of a client
		return info, n, nil
	}
	rest, ok := info.addresses(b[atRest:n], family)
	if !ok || !whole(rest) {
		return nil, 0, fmt.Errorf("%w: its parts don't fit into its %d bytes", ErrInvalid, n)
	}
	if len(rest) > 0 {
		info.TLVs = bytes.Clone(rest)
	}
	return info, n, nil
}

// addresses takes the addresses of a family from the rest of the head, and gives what follows them.
func (i *Info) addresses(b []byte, family byte) ([]byte, bool) {
	size, ports := [...]int{1: 4, 2: 16, 3: 108}[family], 4 // bytes of one address, of both ports
	if family == 3 {
		ports = 0
	}
	if len(b) < 2*size+ports {
		return nil, false
	}
	if ports > 0 {
		from, _ := netip.AddrFromSlice(b[:size])
		to, _ := netip.AddrFromSlice(b[size : 2*size])
		i.Source = netip.AddrPortFrom(from.Unmap(), binary.BigEndian.Uint16(b[2*size:]))
		i.Destination = netip.AddrPortFrom(to.Unmap(), binary.BigEndian.Uint16(b[2*size+2:]))
	}
	return b[2*size+ports:], true
}
