package forward

import (
	"net/netip"
	"strings"
	"testing"
)

func fields(lines ...string) []Field {
	var out []Field
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		out = append(out, Field{[]byte(name), []byte(value)})
	}
	return out
}

func text(fs []Field) string {
	var lines []string
	for _, f := range fs {
		lines = append(lines, string(f.Name)+": "+string(f.Value))
	}
	return strings.Join(lines, "\n")
}

func TestOutgoing(t *testing.T) {
	forwarded := []string{"X-Forwarded-For: 10.0.0.9", "X-Forwarded-Proto: http", "X-Forwarded-Host: shop"}
	for _, tc := range []struct {
		name    string
		in      []string
		trusted bool
		want    []string
	}{
		{"plain", []string{"Accept: x", "Cookie: a=1"}, false, append([]string{"Accept: x", "Cookie: a=1"}, forwarded...)},
		{"hop by hop", []string{"Connection: close", "keep-alive: 1", "Proxy-Connection: x", "Transfer-Encoding: chunked", "A: b"}, false,
			append([]string{"A: b"}, forwarded...)},
		{"named by Connection", []string{"connection: keep-alive,X-One , x-two", "X-ONE: 1", "X-Two: 2", "X-Three: 3"}, false,
			append([]string{"X-Three: 3"}, forwarded...)},
		{"upgrade", []string{"Connection: Upgrade", "Upgrade: websocket"}, false,
			append([]string{"Connection: Upgrade", "Upgrade: websocket"}, forwarded...)},
		{"upgrade that Connection does not name", []string{"Upgrade: h2c"}, false, forwarded},
		{"te", []string{"TE: gzip, Trailers"}, false, append([]string{"TE: trailers"}, forwarded...)},
		{"forged", []string{"x-forwarded-for: 1.1.1.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: h"}, false, forwarded},
		{"trusted", []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: h"}, true,
			[]string{"X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.0.0.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: h"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &Request{Authority: []byte("shop"), Remote: netip.MustParseAddr("::ffff:10.0.0.9"), Fields: fields(tc.in...)}
			before := text(r.Fields)
			if got, want := text(Outgoing(r, tc.trusted).Fields), strings.Join(tc.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if text(r.Fields) != before {
				t.Error("the client's request was changed")
			}
		})
	}
	r := &Request{Authority: []byte("shop"), Secure: true}
	if v := Get(Outgoing(r, false).Fields, "x-forwarded-proto"); string(v) != "https" {
		t.Errorf("over TLS: %s", v)
	}
}
