package proxyproto

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// binaryHead is a header of version 2.
func binaryHead(command, family byte, rest string) string {
	b := append([]byte(nil), signature...)
	b = append(b, command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rest)))
	return string(b) + rest
}

func tlv(kind byte, value string) string {
	return string(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(value)))) + value
}

const (
	v4 = "\x0a\x01\x02\x03" + "\xc0\x00\x02\x01" + "\x9c\x40" + "\x01\xbb"
	v6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02" +
		"\x9c\x40" + "\x01\xbb"
)

func TestParse(t *testing.T) {
	ssl := tlv(TypeSSL, "\x01\x00\x00\x00\x00"+tlv(TypeSSLVersion, "TLSv1.3"))
	for _, c := range []struct {
		name, text   string
		version      uint8
		source, dest string // empty: none
		tlvs         int
	}{
		{"tcp4", "PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\r\n", 1, "10.1.2.3:40000", "192.0.2.1:443", 0},
		{"tcp6", "PROXY TCP6 2001:db8::1 2001:db8::2 40000 443\r\n", 1, "[2001:db8::1]:40000", "[2001:db8::2]:443", 0},
		{"a mapped address is what it maps", "PROXY TCP6 ::ffff:10.1.2.3 ::1 1 2\r\n", 1, "10.1.2.3:1", "[::1]:2", 0},
		{"longest", "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", 1,
			"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", 0},
		{"unknown", "PROXY UNKNOWN\r\n", 1, "", "", 0},
		{"unknown with more", "PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", 1, "", "", 0},
		{"binary 4", binaryHead(0x21, 0x11, v4), 2, "10.1.2.3:40000", "192.0.2.1:443", 0},
		{"binary 6", binaryHead(0x21, 0x21, v6), 2, "[2001:db8::1]:40000", "[2001:db8::2]:443", 0},
		{"binary unix", binaryHead(0x21, 0x31, strings.Repeat("\x00", 216)), 2, "", "", 0},
		{"local", binaryHead(0x20, 0x11, v4), 2, "", "", 0},
		{"local of nothing", binaryHead(0x20, 0x00, ""), 2, "", "", 0},
		{"unspecified", binaryHead(0x21, 0x00, "anything"), 2, "", "", 0},
		{"datagrams", binaryHead(0x21, 0x12, v4), 2, "", "", 0},
		{"values", binaryHead(0x21, 0x11, v4+tlv(TypeAuthority, "example.com")+ssl), 2, "10.1.2.3:40000", "192.0.2.1:443", len(ssl) + 14},
	} {
		t.Run(c.name, func(t *testing.T) {
			for cut := range len(c.text) {
				if info, _, err := Parse([]byte(c.text[:cut])); !errors.Is(err, ErrMore) {
					t.Fatalf("its first %d bytes: %+v, %v", cut, info, err)
				}
			}
			info, n, err := Parse([]byte(c.text + "GET / HTTP/1.1\r\n"))
			if err != nil || n != len(c.text) {
				t.Fatalf("%d of %d bytes, %v", n, len(c.text), err)
			}
			if text(info.Source) != c.source || text(info.Destination) != c.dest || info.Version != c.version || len(info.TLVs) != c.tlvs {
				t.Errorf("%+v", info)
			}
		})
	}
}

func text(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func TestInvalid(t *testing.T) {
	for name, s := range map[string]string{
		"a request":                "GET / HTTP/1.1\r\n\r\n",
		"other case":               "proxy TCP4 10.1.2.3 192.0.2.1 40000 443\r\n",
		"a space before":           " PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\r\n",
		"TLS":                      "\x16\x03\x01",
		"without CR":               "PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\n",
		"endless":                  "PROXY UNKNOWN " + strings.Repeat("x", maxLine),
		"two spaces":               "PROXY TCP4  10.1.2.3 192.0.2.1 40000 443\r\n",
		"one port":                 "PROXY TCP4 10.1.2.3 192.0.2.1 40000\r\n",
		"too much":                 "PROXY TCP4 10.1.2.3 192.0.2.1 40000 443 x\r\n",
		"port too large":           "PROXY TCP4 10.1.2.3 192.0.2.1 40000 65536\r\n",
		"port with a sign":         "PROXY TCP4 10.1.2.3 192.0.2.1 +40000 443\r\n",
		"address of another kind":  "PROXY TCP4 2001:db8::1 192.0.2.1 40000 443\r\n",
		"address of the other":     "PROXY TCP6 10.1.2.3 192.0.2.1 40000 443\r\n",
		"leading zero":             "PROXY TCP4 010.1.2.3 192.0.2.1 40000 443\r\n",
		"zone":                     "PROXY TCP6 fe80::1%eth0 ::1 40000 443\r\n",
		"a name":                   "PROXY TCP4 localhost 192.0.2.1 40000 443\r\n",
		"udp":                      "PROXY UDP4 10.1.2.3 192.0.2.1 40000 443\r\n",
		"nothing":                  "PROXY \r\n",
		"binary version 1":         binaryHead(0x11, 0x11, v4),
		"binary command":           binaryHead(0x22, 0x11, v4),
		"binary family":            binaryHead(0x21, 0x41, v4),
		"binary transport":         binaryHead(0x21, 0x13, v4),
		"binary too short":         binaryHead(0x21, 0x11, v4[:11]),
		"binary 6 too short":       binaryHead(0x21, 0x21, v4),
		"binary too long":          binaryHead(0x20, 0x11, strings.Repeat("x", MaxHeader-15)),
		"a value that is cut off":  binaryHead(0x21, 0x11, v4+"\x02\x00\x05abc"),
		"a value without a length": binaryHead(0x21, 0x11, v4+"\x02\x00"),
	} {
		if info, n, err := Parse([]byte(s)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %d, %v", name, info, n, err)
		}
	}
}

func TestValues(t *testing.T) {
	ssl := "\x01\x00\x00\x00\x07" + tlv(TypeSSLVersion, "TLSv1.3") + tlv(TypeSSLCN, "client")
	info, _, err := Parse([]byte(binaryHead(0x21, 0x11, v4+tlv(TypeAuthority, "a.example")+tlv(TypeSSL, ssl)+tlv(0xe0, ""))))
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := info.TLV(TypeAuthority); string(v) != "a.example" || !ok {
		t.Errorf("authority: %q, %v", v, ok)
	}
	if v, ok := info.TLV(0xe0); string(v) != "" || !ok {
		t.Errorf("an empty value: %q, %v", v, ok)
	}
	if _, ok := info.TLV(TypeALPN); ok {
		t.Error("a value that is not there")
	}
	if v, ok := info.SSL(TypeSSLCN); string(v) != "client" || !ok {
		t.Errorf("the client's name: %q, %v", v, ok)
	}
	if n, ok := info.SSLVerify(); n != 7 || !ok {
		t.Errorf("verification: %d, %v", n, ok)
	}
	if _, ok := (&Info{TLVs: []byte(tlv(TypeSSL, "\x01"))}).SSL(TypeSSLCN); ok {
		t.Error("a value within a part that is too short")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\r\nGET"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(binaryHead(0x21, 0x11, v4+tlv(TypeSSL, "\x01\x00\x00\x00\x00"+tlv(TypeSSLCN, "x")))))
	f.Add([]byte(binaryHead(0x21, 0x21, v6)))
	f.Fuzz(func(t *testing.T, b []byte) {
		info, n, err := Parse(b)
		if err != nil {
			if info != nil || n != 0 || errors.Is(err, ErrMore) && len(b) >= MaxHeader {
				t.Fatalf("%+v, %d, %v", info, n, err)
			}
			return
		}
		if n < len("PROXY \r\n") || n > min(len(b), MaxHeader) || info.Source.IsValid() != info.Destination.IsValid() {
			t.Fatalf("%+v of %d bytes", info, n)
		}
		again, m, err := Parse(b[:n]) // what follows has no part in it
		if err != nil || m != n || again.Source != info.Source || string(again.TLVs) != string(info.TLVs) {
			t.Fatalf("alone: %+v, %d, %v", again, m, err)
		}
		for kind := range 256 {
			info.TLV(byte(kind))
			info.SSL(byte(kind))
		}
	})
}
