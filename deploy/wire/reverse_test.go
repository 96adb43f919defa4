package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy"
)

// exchange sends a request over a connection of its own and gives the answer and what the backend got.
func exchange(t *testing.T, l *Lane, request string) (answer, seen *Message) {
	t.Helper()
	c, err := Dial(l.Addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if answer, err = ReadAnswer(c.In, strings.HasPrefix(request, "HEAD")); err != nil {
		t.Fatalf("%+v, %v", answer, err)
	}
	got, _ := l.Backend.Take()
	if answer.Faults != nil || len(got) != 1 || got[0].Faults != nil {
		t.Fatalf("answer %+v; the backend got %+v", answer, got)
	}
	return answer, got[0]
}

// TestNothingIsInvented: fields that neither side said are not there, on either side.
func TestNothingIsInvented(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		l.Backend.Say(Answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\x00\x01\x02"))
		answer, seen := exchange(t, l, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		for _, name := range []string{"User-Agent", "Accept-Encoding", "Accept", "Content-Length", "Transfer-Encoding", "Via", "Forwarded", "Connection", "Cache-Control"} {
			if v, n := seen.Get(name); n > 0 {
				t.Errorf("the backend got %s: %s", name, v)
			}
		}
		for _, name := range []string{"Content-Type", "Via", "X-Content-Type-Options", "Transfer-Encoding", "Content-Encoding", "Set-Cookie", "ETag", "Age"} {
			if v, n := answer.Get(name); n > 0 {
				t.Errorf("the client got %s: %s", name, v)
			}
		}
	})
}

// TestAnswersKeepTheirFields: each once, in order, with what the backend said of Date, encodings, cookies and places.
func TestAnswersKeepTheirFields(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		fields := []string{"Set-Cookie: a=1", "Set-Cookie: b=2; Path=/", "X-A:\x20", "x-b: 1", "X-B: 2", "Content-Encoding: gzip", "Content-Type: text/odd", "Link: </a>", "Vary: *", "WWW-Authenticate: Basic"}
		text := "HTTP/1.1 401 Odd Words\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n" + strings.Join(fields, "\r\n") + "\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"
		l.Backend.Say(Answer(text))
		answer, _ := exchange(t, l, "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
		var got []string
		for _, f := range answer.Fields {
			if name, _, _ := strings.Cut(f, ":"); !slices.Contains([]string{"date", "server", "content-length", "connection"}, strings.ToLower(name)) {
				got = append(got, f)
			}
		}
		same := func(list []string) (out []string) { // lines of one name in order; names among each other in any
			for _, f := range list {
				name, value, _ := strings.Cut(f, ":")
				out = append(out, strings.ToLower(name)+":"+strings.TrimRight(value, " "))
			}
			slices.SortStableFunc(out, func(a, b string) int { return strings.Compare(strings.Split(a, ":")[0], strings.Split(b, ":")[0]) })
			return out
		}
		if !slices.Equal(same(got), same(fields)) {
			t.Errorf("fields\n%q, want\n%q", got, fields)
		}
		if _, n := answer.Get("Date"); n != 1 {
			t.Errorf("Date: %d times", n)
		}
		if answer.Status() != 401 || string(answer.Body) != "\x1f\x8b\x08\x00" {
			t.Errorf("%+v", answer)
		}
	})
}

// TestQueriesAreNotTouched: what a query means is the backend's to say; a proxy that cleans it up makes another request of it.
func TestQueriesAreNotTouched(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		for _, query := range []string{"a=1&a=2&b=1", "a=1&a=%zz&b=3", "a=1;b=2", "a=1&a=2;b=3", "a=%", "a=%1", "a=%3bb%3d1", "&&a", "=", "?", "a=+b%20c", "a=%00", "%61=1"} {
			_, seen := exchange(t, l, "GET /p?"+query+" HTTP/1.1\r\nHost: a\r\n\r\n")
			if seen.Target() != "/p?"+query {
				t.Errorf("%s became %s", query, seen.Target())
			}
		}
	})
}

// TestForwardedChains: only a proxy that is trusted may say who asked before.
func TestForwardedChains(t *testing.T) {
	trusting := func(c *proxy.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
	for _, tc := range []struct {
		name         string
		set          func(*proxy.Config)
		fields, want string
	}{
		{"none", nil, "", "127.0.0.1"},
		{"a stranger's", nil, "X-Forwarded-For: 6.6.6.6\r\n", "127.0.0.1"},
		{"a trusted one's", trusting, "X-Forwarded-For: 6.6.6.6\r\n", "6.6.6.6, 127.0.0.1"},
		{"a list in several lines", trusting, "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nA: b\r\nx-forwarded-for: 3.3.3.3\r\n", "1.1.1.1, 2.2.2.2, 3.3.3.3, 127.0.0.1"},
		{"an empty one", trusting, "X-Forwarded-For:\r\n", "127.0.0.1"},
	} {
		l, err := NewLane(func(b *Backend) (*Proxy, error) { return FromTopology(tc.set, b.Addr) })
		if err != nil {
			t.Fatal(err)
		}
		_, seen := exchange(t, l, "GET / HTTP/1.1\r\nHost: a\r\n"+tc.fields+"\r\n")
		if got, n := seen.Get("X-Forwarded-For"); got != tc.want || n != 1 {
			t.Errorf("%s: %d times, %q, want %q", tc.name, n, got, tc.want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBodiesOfAllSizes: none, small, and larger than any buffer, by length and in chunks, there and back.
func TestBodiesOfAllSizes(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
			if m.ReadRequestBody(in) != nil {
				return false
			}
			_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(m.Body), m.Body)
			return err == nil
		})
		for _, size := range []int{0, 1, 4095, 4096, 4097, 16384, 65536 - 200, 65536} {
			body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
			for _, framed := range []string{
				fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body),
				fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n", chunked(body, 1000)),
			} {
				answer, seen := exchange(t, l, "POST / HTTP/1.1\r\nHost: a\r\n"+framed)
				if string(seen.Body) != body || string(answer.Body) != body {
					t.Errorf("%d bytes: the backend got %d, the client %d", size, len(seen.Body), len(answer.Body))
				}
			}
		}
	})
}

// chunked is a text in chunks of a size, without the last one.
func chunked(text string, size int) string {
	var b strings.Builder
	for text != "" {
		n := min(size, len(text))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, text[:n])
		text = text[n:]
	}
	return b.String()
}

// TestParts: a range, what does not apply, and what has not changed are the backend's answers, whole.
func TestParts(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		for _, head := range []string{"206 Partial Content\r\nContent-Range: bytes 1-2/5", "416 Range Not Satisfiable\r\nContent-Range: bytes */5", "412 Precondition Failed\r\nETag: W/\"a\"",
			"301 Moved Permanently\r\nLocation: http://elsewhere/?a=b#c", "303 See Other\r\nLocation: ../x", "500 Internal Server Error\r\nRetry-After: 1", "451 Odd\r\nLink: <a>"} {
			l.Backend.Say(Answer("HTTP/1.1 " + head + "\r\nContent-Length: 2\r\n\r\nel"))
			answer, seen := exchange(t, l, "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\nIf-None-Match: \"x\"\r\nIf-Range: \"y\"\r\n\r\n")
			status, field, _ := strings.Cut(head, "\r\n")
			name, value, _ := strings.Cut(field, ": ")
			if v, n := answer.Get(name); fmt.Sprint(answer.Status()) != status[:3] || n != 1 || v != value || string(answer.Body) != "el" {
				t.Errorf("%s: %+v", head, answer)
			}
			for _, name := range []string{"Range", "If-None-Match", "If-Range"} {
				if _, n := seen.Get(name); n != 1 {
					t.Errorf("the backend got %s %d times", name, n)
				}
			}
		}
	})
}
