package front

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/upstrand/upstrand/proxy/forward"
)

// seen is a request in one text, and its body.
func seen(r *forward.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s @%s %d", r.Method, r.Target, r.Proto, r.Authority, r.Length)
	for _, f := range r.Fields {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(&b, " %q %v", body, err)
		for _, f := range r.Body.Trailer() {
			fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
		}
	}
	return b.String()
}

// TestRequests: what the handler sees, whether the request comes at once or byte by byte.
func TestRequests(t *testing.T) {
	const host = "Host: a\r\n"
	for _, tc := range []struct{ name, sent, want string }{
		{"names, values and order as they came", "GET /a?b=%20 HTTP/1.1\r\nx-B: 1\r\nHOST: Shop:80\r\nA_b:  2\t\r\nx-b:3\r\n\r\n", "GET /a?b=%20 HTTP/1.1 @Shop:80 0 x-B=1 A_b=2 x-b=3"},
		{"empty value", "GET / HTTP/1.1\r\n" + host + "X:\r\n\r\n", "GET / HTTP/1.1 @a 0 X="},
		{"old", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0 @ 0"},
		{"newer minor", "GET / HTTP/1.5\r\n" + host + "\r\n", "GET / HTTP/1.1 @a 0"},
		{"old, no upgrade", "GET / HTTP/1.0\r\nUpgrade: x\r\nA: b\r\n\r\n", "GET / HTTP/1.0 @ 0 A=b"},
		{"absolute", "GET http://Other:8080/x?y HTTP/1.1\r\n" + host + "\r\n", "GET /x?y HTTP/1.1 @Other:8080 0"},
		{"absolute, no path", "GET HTTPS://o?q HTTP/1.1\r\n" + host + "\r\n", "GET /?q HTTP/1.1 @o 0"},
		{"absolute, nothing", "OPTIONS http://o HTTP/1.1\r\n" + host + "\r\n", "OPTIONS / HTTP/1.1 @o 0"},
		{"star", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "OPTIONS * HTTP/1.1 @a 0"},
		{"connect", "CONNECT a:1 HTTP/1.1\r\n" + host + "\r\n", "CONNECT a:1 HTTP/1.1 @a 0"},
		{"empty lines before", "\r\n\r\nGET / HTTP/1.1\r\n" + host + "\r\n", "GET / HTTP/1.1 @a 0"},
		{"body", "POST / HTTP/1.1\r\n" + host + "Content-Length: 003\r\n\r\nabc", `POST / HTTP/1.1 @a 3 Content-Length=003 "abc" <nil>`},
		{"no bytes", "POST / HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n", `POST / HTTP/1.1 @a 0 Content-Length=0`},
		{"chunks", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n02\r\nde\r\n0\r\nSum: 5\r\n\r\n", `POST / HTTP/1.1 @a -1 "abcde" <nil> Sum=5`},
		{"no chunks", "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", `POST / HTTP/1.1 @a -1 "" <nil>`},
		{"long body", "POST / HTTP/1.1\r\n" + host + "Content-Length: 20000\r\n\r\n" + strings.Repeat("0123456789", 2000), `POST / HTTP/1.1 @a 20000 Content-Length=20000 "` + strings.Repeat("0123456789", 2000) + `" <nil>`},
		{"long head", "GET / HTTP/1.1\r\n" + host + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 20) + "\r\n", "GET / HTTP/1.1 @a 0" + strings.Repeat(" A="+strings.Repeat("b", 1000), 20)},
	} {
		for _, step := range []int{1 << 20, 7} {
			if step == 7 && len(tc.sent) > 10000 {
				step = 1000
			}
			t.Run(fmt.Sprintf("%s by %d", tc.name, step), func(t *testing.T) {
				var got []string
				var mu sync.Mutex
				_, addr := serve(t, Settings{}, func(_ context.Context, r *forward.Request, c forward.Client) {
					mu.Lock()
					got = append(got, seen(r))
					mu.Unlock()
					forward.Plain(c, r, 200, "ok")
				})
				c := dial(t, addr)
				// The second request shows that the first was read to its end, and no further.
				text := tc.sent + "GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
				old := strings.Contains(tc.want, "HTTP/1.0")
				for len(text) > 0 {
					n := min(step, len(text))
					if _, err := io.WriteString(c, text[:n]); err != nil && !old {
						t.Fatal(err)
					}
					text = text[n:]
				}
				if answers := gone(t, c); strings.Count(answers, "HTTP/1.1 200 OK\r\n") != 2 && !old {
					t.Errorf("answers %q", answers)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(got) == 0 || got[0] != tc.want {
					t.Errorf("got  %.300q\nwant %.300q", got, tc.want)
				}
			})
		}
	}
}

// TestFaults: what is no proper request is told to the handler as that, and nothing on its connection is read any further.
func TestFaults(t *testing.T) {
	const get, host = "GET / HTTP/1.1\r\n", "Host: a\r\n"
	for _, tc := range []struct {
		name, sent string
		want       *fault
	}{
		{"no version", "GET /\r\n", faultLine}, {"garbage", "\x16\x03\x01\r\n", faultMethod}, {"small letters", "get / HTTP/1.1\r\n", faultMethod},
		{"two spaces", "GET  / HTTP/1.1\r\n", faultLine}, {"space in the target", "GET /a b HTTP/1.1\r\n", faultLine}, {"tab", "GET\t/ HTTP/1.1\r\n", faultMethod},
		{"NUL in the target", "GET /\x00 HTTP/1.1\r\n", faultTarget}, {"fragment", "GET /a#b HTTP/1.1\r\n", faultTarget},
		{"HTTP/2", "GET / HTTP/2.0\r\n", faultVersion}, {"preface", clientPreface, faultVersion}, {"HTTP/1.10", "GET / HTTP/1.10\r\n", faultLine},
		{"empty lines", "\r\n\r\n\r\n\r\n\r\n", faultEmpty}, {"LF first", "\n" + get, faultBareLF}, {"LF", "GET / HTTP/1.1\nHost: a\n\n", faultBareLF},
		{"CR in a value", get + host + "A: b\rc\r\n", faultValue}, {"folded", get + host + "A: b\r\n c\r\n", faultFolded}, {"space before the colon", get + host + "A : b\r\n", faultName},
		{"no name", get + ": b\r\n", faultName}, {"no colon", get + "abc\r\n", faultName}, {"DEL", get + "A: b\x7f\r\n", faultValue},
		{"no host", get + "\r\n", faultNoHost}, {"two hosts", get + host + host + "\r\n", faultHosts}, {"bad host", get + "Host: a/b\r\n\r\n", faultHost}, {"empty host", get + "Host:\r\n\r\n", faultHost},
		{"star", "GET * HTTP/1.1\r\n" + host + "\r\n", faultStar}, {"authority", "GET a:80 HTTP/1.1\r\n" + host + "\r\n", faultAddress}, {"user", "GET http://u@h/ HTTP/1.1\r\n" + host + "\r\n", faultAddress},
		{"ftp", "GET ftp://h/ HTTP/1.1\r\n" + host + "\r\n", faultAddress}, {"address without a host", "GET http:///x HTTP/1.1\r\n" + host + "\r\n", faultAddress},
		{"two lengths", get + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", faultLengths}, {"signed", get + host + "Content-Length: +1\r\n\r\na", faultLength},
		{"both", get + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", faultBoth}, {"two codings", get + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", faultCodings},
		{"unknown coding", get + host + "Transfer-Encoding: gzip, chunked\r\n", faultCodingUnknown}, {"identity", get + host + "Transfer-Encoding: identity\r\n", faultCoding},
		{"old coding", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", faultCoding10}, {"bad chunk", get + host + "Transfer-Encoding: chunked\r\n\r\nx\r\n", faultChunk},
		{"two authorizations", get + host + "Authorization: a\r\nauthorization: b\r\n", faultRepeated},
		{"two unknown expectations", "GET / HTTP/1.0\r\nExpect: a\r\nExpect: b\r\n", faultRepeated},
		{"expects the unknown", get + host + "Expect: more\r\n", faultExpect},
		{"long line", "GET /" + strings.Repeat("a", 70000), faultLongLine}, {"large head", get + host + strings.Repeat("A: "+strings.Repeat("b", 8000)+"\r\n", 9), faultLarge},
		{"many fields", get + host + strings.Repeat("A:\r\n", maxFields+10), faultLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			answer := talk(t, func(_ context.Context, r *forward.Request, c forward.Client) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(r.Refuse, r.Invalid, r.Body != nil))
				plain(context.Background(), r, c)
			}, tc.sent+"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n")
			mu.Lock()
			defer mu.Unlock()
			if want := fmt.Sprint(tc.want.status, tc.want.why, false); len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if !strings.HasPrefix(answer, fmt.Sprintf("HTTP/1.1 %d ", tc.want.status)) || !strings.Contains(answer, "\r\nConnection: close\r\n") {
				t.Errorf("answer %q", answer)
			}
		})
	}
}

func TestLimitsOfAHead(t *testing.T) {
	for _, tc := range []struct {
		name, sent string
		want       *fault
	}{
		{"first line", "GET /" + strings.Repeat("a", 100) + " HTTP/1.1\r\n", faultLongLine}, {"first line without an end", "GET /" + strings.Repeat("a", 100), faultLongLine},
		{"field", "GET / HTTP/1.1\r\nA: " + strings.Repeat("b", 100) + "\r\n", faultLongField}, {"field without an end", "GET / HTTP/1.1\r\nA: " + strings.Repeat("b", 100), faultLongField},
		{"all", "GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", 40), faultLongHead},
	} {
		_, addr := serve(t, Settings{ClientLine: 50, ClientLines: 200}, plain)
		c := dial(t, addr)
		say(t, c, tc.sent)
		if got := gone(t, c); !strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", tc.want.status)) || !strings.Contains(got, tc.want.why) {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// TestNothingIsLeftOfARequest: each field of the next one is set, also when its memory was used before.
func TestNothingIsLeftOfARequest(t *testing.T) {
	srv := NewServer(Settings{}, Options{})
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	c := newConn(srv, a)
	w := c.take()
	w.head.req = forward.Request{}
	c.prepare()
	c.fill(1)
	clean := w.head.req
	fillAll(reflect.ValueOf(&w.head.req).Elem())
	c.prepare()
	c.fill(1)
	if used := w.head.req; !reflect.DeepEqual(clean, used) {
		t.Errorf("%+v\n%+v", clean, used)
	}
	c.give()
}

// fillAll gives each field some value.
func fillAll(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("used")
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Interface:
			f.Set(reflect.ValueOf(&held{}))
		case reflect.Struct:
			if f.Type() == reflect.TypeFor[netip.Addr]() {
				f.Set(reflect.ValueOf(netip.IPv6Unspecified()))
			} else {
				f.Set(reflect.ValueOf(netip.AddrPortFrom(netip.IPv6Unspecified(), 1)))
			}
		default:
			f.Set(reflect.ValueOf(7).Convert(f.Type()))
		}
	}
}

// TestPlainNames: that all names are letters, digits and hyphens is said of such requests only.
func TestPlainNames(t *testing.T) {
	for fields, want := range map[string]bool{
		"": true, "A-1: _\r\nB: .\r\n": true, "A_b: c\r\n": false, "Long-Name-Of_A-Field: c\r\nA: b\r\n": false, "A: b\r\nA.b: c\r\n": false, "A: b\r\n c\r\n": false,
	} {
		var plain bool
		talk(t, func(_ context.Context, r *forward.Request, c forward.Client) {
			plain = r.Plain
			forward.Plain(c, r, 200, "")
		}, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"+fields+"\r\n")
		if plain != want {
			t.Errorf("%q: %v", fields, plain)
		}
	}
}
