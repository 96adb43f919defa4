package site

import (
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/proxy/proxyproto"
	"github.com/upstrand/upstrand/proxy/script"
)

// What a PROXY protocol header said, for whoever asks: nobody has to believe it. Of a header without addresses there are
// none, as on a connection without one.
var protocolVariables = definitions{
	"proxy_protocol_addr":        maybe(ofHeader(func(i *proxyproto.Info) string { return addrText(i.Source.Addr()) })),
	"proxy_protocol_port":        maybe(ofHeader(func(i *proxyproto.Info) string { return portText(i.Source.Port()) })),
	"proxy_protocol_server_addr": maybe(ofHeader(func(i *proxyproto.Info) string { return addrText(i.Destination.Addr()) })),
	"proxy_protocol_server_port": maybe(ofHeader(func(i *proxyproto.Info) string { return portText(i.Destination.Port()) })),
}

func ofHeader(text func(*proxyproto.Info) string) func(*request) string {
	return func(r *request) string {
		if r.in.Proxy == nil || !r.in.Proxy.Source.IsValid() {
			return ""
		}
		return text(r.in.Proxy)
	}
}

var protocolFamilies = families{"proxy_protocol_tlv_": protocolValue}

// protocolTypes are the values of a header that have names.
var protocolTypes = map[string]byte{
	"alpn": proxyproto.TypeALPN, "authority": proxyproto.TypeAuthority, "unique_id": proxyproto.TypeUniqueID,
	"ssl": proxyproto.TypeSSL, "netns": proxyproto.TypeNetNS,
}

var protocolTypesSSL = map[string]byte{
	"version": proxyproto.TypeSSLVersion, "cn": proxyproto.TypeSSLCN, "cipher": proxyproto.TypeSSLCipher,
	"sig_alg": proxyproto.TypeSSLSigAlg, "key_alg": proxyproto.TypeSSLKeyAlg,
}

// protocolValue is $proxy_protocol_tlv_NAME, in which the name may be a number such as 0x05.
func protocolValue(name string) (script.Func[*request], bool) {
	get := (*proxyproto.Info).TLV
	inner, ofSSL := strings.CutPrefix(name, "ssl_")
	if ofSSL {
		if inner == "verify" {
			return protocolVerify, true
		}
		name, get = inner, (*proxyproto.Info).SSL
	}
	kind, ok := protocolTypes[name]
	if ofSSL {
		kind, ok = protocolTypesSSL[name]
	}
	if hex, isHex := strings.CutPrefix(name, "0x"); isHex {
		n, err := strconv.ParseUint(hex, 16, 8)
		kind, ok = byte(n), err == nil
	}
	return func(r *request) (string, bool) {
		if r.in.Proxy == nil {
			return "", false
		}
		v, ok := get(r.in.Proxy, kind)
		return string(v), ok
	}, ok
}

func protocolVerify(r *request) (string, bool) {
	if r.in.Proxy == nil {
		return "", false
	}
	result, ok := r.in.Proxy.SSLVerify()
	if !ok {
		return "", false
	}
	return strconv.FormatUint(uint64(result), 10), true
}
