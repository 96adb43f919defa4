package http2

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// TestMalformed: what is no proper request of HTTP/2 is refused by the wire, or comes to the handler as invalid.
func TestMalformed(t *testing.T) {
	plain := get()
	without := func(name string) (out []string) {
		for i := 0; i < len(plain); i += 2 {
			if plain[i] != name {
				out = append(out, plain[i], plain[i+1])
			}
		}
		return out
	}
	with := func(name, value string) []string { return append(without(name), name, value) }
	pseudo := func(name, value string) []string { return append([]string{name, value}, without(name)...) }
	const reset, invalid = "RST 1 PROTOCOL_ERROR", "HEADERS 1 499 end=true"
	for name, tc := range map[string]struct {
		fields []string
		body   string // none: the head ends the request
		want   string
	}{
		"fine":                        {plain, "", "HEADERS 1 200 end=true"},
		"fine with a body":            {append(post(), "content-length", "3"), "abc", "HEADERS 1 200 end=true"},
		"no method":                   {without(":method"), "", reset},
		"no path":                     {without(":path"), "", reset},
		"empty path":                  {pseudo(":path", ""), "", reset},
		"no scheme":                   {without(":scheme"), "", reset},
		"no authority":                {without(":authority"), "", invalid},
		"userinfo":                    {pseudo(":authority", "u@a.example"), "", invalid},
		"bad host":                    {pseudo(":authority", "a b"), "", invalid},
		"bad port":                    {pseudo(":authority", "a.example:x"), "", invalid},
		"two hosts":                   {with("host", "b.example"), "", invalid},
		"the same host twice":         {with("host", "A.example"), "", "HEADERS 1 200 end=true"},
		"unknown pseudo field":        {pseudo(":x", "y"), "", reset},
		"pseudo field behind others":  {append(without(":path"), "x", "y", ":path", "/"), "", reset},
		"upper case":                  {with("X-Y", "z"), "", reset},
		"a line feed in a value":      {with("x", "a\nb"), "", reset},
		"a carriage return":           {with("x", "a\rb"), "", reset},
		"NUL":                         {with("x", "a\x00b"), "", reset},
		"a space in a name":           {with("x y", "z"), "", reset},
		"connection":                  {with("connection", "close"), "", reset},
		"keep-alive":                  {with("keep-alive", "1"), "", reset},
		"transfer-encoding":           {with("transfer-encoding", "chunked"), "", reset},
		"upgrade":                     {with("upgrade", "websocket"), "", reset},
		"te":                          {with("te", "gzip"), "", reset},
		"te: trailers":                {with("te", "trailers"), "", "HEADERS 1 200 end=true"},
		"websocket":                   {append([]string{":method", "CONNECT", ":protocol", "websocket"}, without(":method")...), "", reset},
		"CONNECT":                     {[]string{":method", "CONNECT", ":authority", "a.example:1"}, "", "HEADERS 1 200 end=true"},
		"a method with a space":       {pseudo(":method", "G T"), "", invalid},
		"a target that is an address": {pseudo(":path", "http://a.example/"), "", invalid},
		"a host with an escape":       {pseudo(":authority", "a%00"), "", invalid},
		"an empty label":              {pseudo(":authority", "a..b"), "", invalid},
		"lower case":                  {pseudo(":method", "get"), "", invalid},
		"another expectation":         {with("expect", "more"), "", invalid},
		"two authorizations":          {append(with("authorization", "a"), "authorization", "b"), "", invalid},
		"two expectations":            {append(post(), "expect", "100-continue", "expect", "100-continue"), "abc", invalid},
		"two if-none-match":           {append(with("if-none-match", "a"), "if-none-match", "b"), "", "HEADERS 1 200 end=true"},
		"a fragment":                  {pseudo(":path", "/a#b"), "", invalid},
		"a star":                      {pseudo(":path", "*"), "", invalid},
		"a space in the path":         {pseudo(":path", "/a b"), "", invalid},
		"a control in the path":       {pseudo(":path", "/a\x01"), "", invalid},
		"too short a body":            {append(post(), "content-length", "5"), "abc", reset},
		"too long a body":             {append(post(), "content-length", "2"), "abc", reset},
		"no body but a length":        {with("content-length", "5"), "", invalid},
		"no length at all":            {append(post(), "content-length", "x"), "", invalid},
		"two lengths":                 {append(post(), "content-length", "3", "content-length", "3"), "abc", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			d := listen(t, limitsForTests(), false, func(_ context.Context, r *forward.Request, c forward.Client) {
				status := 200
				if r.Invalid != "" {
					status = 499
				} else if r.Body != nil {
					b := make([]byte, 100)
					for {
						_, err := r.Body.Read(b)
						if errors.Is(err, io.EOF) {
							break
						}
						if err != nil {
							status = 498
							break
						}
					}
				}
				say(c, status, "")
			})
			r := dialRaw(t, d.addr)
			_ = r.headers(1, tc.body == "", tc.fields...)
			if tc.body != "" {
				_ = r.fr.WriteData(1, true, []byte(tc.body))
			}
			if got := r.next(); got != tc.want && !strings.HasPrefix(got, tc.want+" ") {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
