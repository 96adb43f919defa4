package proxyproto

import (
	"encoding/binary"
	"net/netip"
)

// Info is what a header says. It holds no memory of the connection it came from.
type Info struct {
	Version uint8 // 1 or 2
	// Source is who opened the connection to the balancer, Destination what it was opened to. Both are not valid where the
	// header gives none that can be an IP address: UNKNOWN, LOCAL (a check of the balancer itself), a unix socket.
	Source, Destination netip.AddrPort
	// TLVs is what followed the addresses of version 2: type, two bytes of length, value, in turn. It was checked.
	TLVs []byte
}

// The types of values that have names in nginx.
const (
	TypeALPN      = 0x01
	TypeAuthority = 0x02
	TypeUniqueID  = 0x05
	TypeSSL       = 0x20
	TypeNetNS     = 0x30

	// Inside of TypeSSL's value.
	TypeSSLVersion = 0x21
	TypeSSLCN      = 0x22
	TypeSSLCipher  = 0x23
	TypeSSLSigAlg  = 0x24
	TypeSSLKeyAlg  = 0x25
)

// TLV is the value of the first of that type; false: there is none.
func (i *Info) TLV(kind byte) ([]byte, bool) { return find(i.TLVs, kind) }

// sslHead is the client's bits and the result of the verification, before the values inside of TypeSSL.
const sslHead = 5

// SSL is the value of the first of that type within TypeSSL.
func (i *Info) SSL(kind byte) ([]byte, bool) {
	v, _ := i.TLV(TypeSSL)
	if len(v) < sslHead {
		return nil, false
	}
	return find(v[sslHead:], kind)
}

// SSLVerify is what the balancer's verification of the client's certificate came to; 0: it was verified.
func (i *Info) SSLVerify() (result uint32, ok bool) {
	v, _ := i.TLV(TypeSSL)
	if len(v) < sslHead {
		return 0, false
	}
	return binary.BigEndian.Uint32(v[1:sslHead]), true
}

func find(list []byte, kind byte) ([]byte, bool) {
	for len(list) >= 3 {
		n := int(binary.BigEndian.Uint16(list[1:3]))
		if len(list) < 3+n {
			return nil, false
		}
		if list[0] == kind {
			return list[3 : 3+n], true
		}
		list = list[3+n:]
	}
	return nil, false
}

// whole reports whether a list of values has its proper length.
func whole(list []byte) bool {
	for len(list) > 0 {
		if len(list) < 3 {
			return false
		}
		n := 3 + int(binary.BigEndian.Uint16(list[1:3]))
		if len(list) < n {
			return false
		}
		list = list[n:]
	}
	return true
}
