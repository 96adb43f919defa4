package forward

import (
	"net/netip"
	"strings"
	"testing"
	"time"
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
	forwarded := []string{"X-Forwarded-For: 10.0.0.9", "X-Forwarded-Proto: http", "X-Forwarded-Host: shop", "X-Real-IP: 10.0.0.9"}
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
		{"upgrade to HTTP/2", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: foo, H2C", "HTTP2-Settings: AAM"}, false, forwarded},
		{"upgrade to nothing", []string{"Connection: Upgrade", "Upgrade: "}, false, forwarded},
		{"te", []string{"TE: gzip, Trailers"}, false, append([]string{"TE: trailers"}, forwarded...)},
		{"forged", []string{"x-forwarded-for: 1.1.1.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: h"}, false, forwarded},
		{"other forged identities", []string{"Forwarded: for=1.1.1.1", "x-real-ip: 1.1.1.1", "X-Forwarded-Port: 1", "X-Forwarded-Prefix: /p",
			"X_Forwarded_For: 1.1.1.1", "My_Field: 1", "X-Forwarded: on"}, false, append([]string{"X-Forwarded: on"}, forwarded...)},
		{"identities from a trusted one", []string{"Forwarded: for=1.1.1.1", "X-Real-IP: 1.1.1.1", "X-Forwarded-Port: 1", "X_Forwarded_For: 1.1.1.1"}, true,
			append([]string{"Forwarded: for=1.1.1.1", "X-Forwarded-Port: 1"}, append(forwarded[:3:3], "X-Real-IP: 1.1.1.1")...)},
		{"trailers without a body", []string{"Trailer: X-Sum"}, false, forwarded},
		{"trusted", []string{"X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: h"}, true,
			[]string{"X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.0.0.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: h", "X-Real-IP: 2.2.2.2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &Request{Authority: []byte("shop"), Remote: netip.MustParseAddr("::ffff:10.0.0.9"), Fields: fields(tc.in...)}
			before := text(r.Fields)
			if got, want := text(Outgoing(r, Identity{Trusted: tc.trusted}).Fields), strings.Join(tc.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if text(r.Fields) != before {
				t.Error("the client's request was changed")
			}
		})
	}
	r := &Request{Authority: []byte("shop"), Secure: true}
	if v := Get(Outgoing(r, Identity{}).Fields, "x-forwarded-proto"); string(v) != "https" {
		t.Errorf("over TLS: %s", v)
	}
}

func TestOutgoingWithABody(t *testing.T) {
	out := func(length int64, lines ...string) string {
		r := &Request{Body: &heldBody{}, Length: length, Fields: fields(lines...)}
		got := Outgoing(r, Identity{}).Fields
		return text(got[:len(got)-3]) // without X-Forwarded-*
	}
	if got := out(3, "Connection: Upgrade", "Upgrade: websocket"); got != "" {
		t.Errorf("a body and an upgrade: %s", got)
	}
	if got := out(3, "Trailer: X-Sum"); got != "" {
		t.Errorf("trailers of a body that is not sent in chunks: %s", got)
	}
	got := out(-1, "Connection: X-Hop", "Trailer: X-Sum, a b,,x-hop, X-Forwarded-For, X_Y, X-Real-IP", "Trailer: Content-Length, Host, Transfer-Encoding", "Trailer: X-Two")
	if want := "Trailer: X-Sum\nTrailer: X-Two"; got != want {
		t.Errorf("trailers:\n%s\nwant\n%s", got, want)
	}
}

func TestTrailersOfAnAnswer(t *testing.T) {
	head := optionsOf(fields("Connection: close, X-Hop"))
	got := text(trailers(fields("X-Sum: 1", "x-hop: 1", "Transfer-Encoding: x", "Content-Length: 5", "Bad Name: 1", "X-Late: 2"), head.pass))
	if want := "X-Sum: 1\nX-Late: 2"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestManyConnectionOptions: looking each field up in each Connection field took half a minute for these.
func TestManyConnectionOptions(t *testing.T) {
	r := &Request{Fields: fields("Connection: close" + strings.Repeat(",a", 200_000))}
	for range 20_000 {
		r.Fields = append(r.Fields, Field{[]byte("B"), nil})
	}
	began := time.Now()
	if got := len(Outgoing(r, Identity{}).Fields); got != 20_003 {
		t.Errorf("%d fields", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
