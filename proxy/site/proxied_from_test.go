package site

import (
	"context"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/upstrand/upstrand/proxy/proxyproto"
)

// askedBehind is what a request with a header of the PROXY protocol is answered.
func (w *world) askedBehind(info *proxyproto.Info, fields ...string) string {
	w.t.Helper()
	in, c := requestOf("GET /", fields...), &collector{}
	in.Proxy = info
	w.site.Handle(context.Background(), w, in, c)
	return c.line()
}

func TestProxyProtocol(t *testing.T) {
	v := func(kind byte, value string) []byte {
		return append(binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(value))), value...)
	}
	ssl := "\x07\x00\x00\x00\x00" + string(v(proxyproto.TypeSSLVersion, "TLSv1.3")) + string(v(proxyproto.TypeSSLCN, "bob"))
	info := &proxyproto.Info{Version: 2, Source: netip.MustParseAddrPort("[2001:db8::7]:40000"), Destination: netip.MustParseAddrPort("192.0.2.1:443"),
		TLVs: append(v(proxyproto.TypeAuthority, "a.example"), append(v(0xea, "vpce-1"), v(proxyproto.TypeSSL, ssl)...)...)}
	for _, c := range []struct {
		name, conf string
		info       *proxyproto.Info
		want       string
	}{
		{"believed", `set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol; location / { return 200 "$remote_addr $remote_port $realip_remote_addr"; }`,
			info, "200 | 2001:db8::7 40000 127.0.0.1"},
		{"not of this peer", `set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; location / { return 200 "$remote_addr $proxy_protocol_addr"; }`,
			info, "200 | 127.0.0.1 2001:db8::7"},
		{"not asked for", `set_real_ip_from 127.0.0.1; location / { return 200 "$remote_addr $proxy_protocol_addr"; }`,
			info, "200 | 9.9.9.9 2001:db8::7"},
		{"no addresses", `set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol; location / { return 200 "$remote_addr [$proxy_protocol_addr]"; }`,
			&proxyproto.Info{Version: 2}, "200 | 127.0.0.1 []"},
		{"no header", `set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol; location / { return 200 "$remote_addr [$proxy_protocol_addr$proxy_protocol_tlv_alpn]"; }`,
			nil, "200 | 127.0.0.1 []"},
		{"before access", `set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol; deny 2001:db8::/32; location / { proxy_pass http://u; }`, info, "403 | <page>"},
		{"variables", `location / { return 200 "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port"; }`,
			info, "200 | 2001:db8::7 40000 192.0.2.1 443"},
		{"values", `location / { return 200 "$proxy_protocol_tlv_authority $proxy_protocol_tlv_0xea $proxy_protocol_tlv_ssl_version $proxy_protocol_tlv_ssl_cn
$proxy_protocol_tlv_ssl_verify [$proxy_protocol_tlv_alpn] $proxy_protocol_tlv_ssl_0x21"; }`, info, "200 | a.example vpce-1 TLSv1.3 bob\n0 [] TLSv1.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "server { listen 127.0.0.1:8080 proxy_protocol; "+c.conf+" }")
			if got := w.askedBehind(c.info, "X-Real-IP: 9.9.9.9"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if l := w.site.Listens(); len(l) != 1 || !l[0].ProxyProtocol {
				t.Errorf("listens %+v", l)
			}
		})
	}
	if _, faults := compileText(t, `server { listen 80; location / { return 200 $proxy_protocol_tlv_colour; } }`); len(faults) != 1 {
		t.Errorf("a value without a name: %v", faults)
	}
	s, faults := compileText(t, `server { listen 81; } server { listen 81 proxy_protocol; server_name b; } server { listen 82; }`)
	if len(faults) > 0 || !s.Listens()[0].ProxyProtocol || s.Listens()[1].ProxyProtocol {
		t.Errorf("an address is one for all its servers: %v", faults)
	}
}

// An address with a zone is none: the text of a zone is whatever a client likes, and deny would not find the address.
func TestRealIPWithoutZone(t *testing.T) {
	w := newWorld(t, `server { listen 8080; set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;
		location / { return 200 "$remote_addr"; } }`)
	for value, want := range map[string]string{
		"fe80::1": "200 | fe80::1", "[fe80::1]:80": "200 | fe80::1", "192.0.2.1:80": "200 | 192.0.2.1",
		`fe80::1%"x`: "200 | 127.0.0.1", "[fe80::1%a]:80": "200 | 127.0.0.1", "[fe80::1%a]": "200 | 127.0.0.1",
	} {
		if got := w.askedBehind(nil, "X-Forwarded-For: "+value); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}
