package http1

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/syntax"
)

// readRequest reads a head, and nothing of a body.
func readRequest(c net.Conn) string {
	var got []byte
	one := make([]byte, 1)
	for !strings.HasSuffix(string(got), "\r\n\r\n") {
		if _, err := c.Read(one); err != nil {
			return string(got)
		}
		got = append(got, one[0])
	}
	return string(got)
}

// outcome tells in one line what became of an attempt: heads, fields, body, trailers, and whether the connection is kept.
func outcome(ps *Pools, pool *Pool, b forward.Backend, r *forward.Request) string {
	var out []string
	tell := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	err := b.Send(r)
	status := 0
	for err == nil && status != 101 && status < 200 && status != forward.Headless {
		var fields []forward.Field
		if status, fields, err = b.Head(); err == nil {
			tell("%d%s", status, tellFields(fields))
		}
	}
	if err == nil && status != 101 {
		var body []byte
		body, err = io.ReadAll(readerOf{b.Body()})
		if len(body) > 0 {
			tell("%q", body)
		}
		tell("%s", strings.TrimSpace("end"+tellFields(b.Body().Trailer())))
		if err != nil {
			out[len(out)-1] = "cut"
		}
	}
	if err != nil {
		var e *forward.Error
		if !errors.As(err, &e) {
			return "an error of another type: " + err.Error()
		}
		tell("%v", e.Class)
	}
	b.Close()
	if pool.shelf.count > 0 {
		tell("kept")
	}
	return strings.Join(out, " ")
}

// tellFields leaves out what each answer says.
func tellFields(fields []forward.Field) string {
	var out strings.Builder
	for _, f := range fields {
		if !is(f.Name, "content-length") && !is(f.Name, "transfer-encoding") && !is(f.Name, "connection") {
			fmt.Fprintf(&out, " %s=%s", f.Name, f.Value)
		}
	}
	return out.String()
}

type row struct{ name, answer, want string }

const long = 2000

// rows are bytes of peers, which then close, and what is made of them. The head may have 1500 bytes.
func rows() []row {
	h := "HTTP/1.1 200 OK\r\n"
	cl := h + "Content-Length: 2\r\n"
	te := h + "Transfer-Encoding: chunked\r\n\r\n"
	bad := "invalid_header"
	return []row{
		// the first line
		{"plain", cl + "\r\nhi", `200 "hi" end kept`},
		{"no reason, no space", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 end kept"},
		{"no reason, space", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 end kept"},
		{"odd reason", "HTTP/1.1 200 a\tb \xc3\xa4\r\nContent-Length: 0\r\n\r\n", "200 end kept"},
		{"unknown status", "HTTP/1.1 799 X\r\nContent-Length: 0\r\n\r\n", "799 end kept"},
		{"HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", "200 end kept"},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "200 end"},
		{"HTTP/1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi", `200 "hi" end kept`},
		{"HTTP/0.9", "hello", bad},
		{"HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n", bad},
		{"HTTP/1.", "HTTP/1. 200 OK\r\n\r\n", bad},
		{"HTTP/1.10", "HTTP/1.10 200 OK\r\n\r\n", bad},
		{"HTTP/11", "HTTP/11 200 OK\r\n\r\n", bad},
		{"lower case", "http/1.1 200 OK\r\n\r\n", bad},
		{"empty first line", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", bad},
		{"space first", " HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", bad},
		{"two digits", "HTTP/1.1 20 OK\r\n\r\n", bad},
		{"four digits", "HTTP/1.1 2000 OK\r\n\r\n", bad},
		{"letters", "HTTP/1.1 2x0 OK\r\n\r\n", bad},
		{"below 100", "HTTP/1.1 099 OK\r\n\r\n", bad},
		{"signed", "HTTP/1.1 +20 OK\r\n\r\n", bad},
		{"two spaces", "HTTP/1.1  200 OK\r\n\r\n", bad},
		{"tab", "HTTP/1.1\t200 OK\r\n\r\n", bad},
		{"tab after the status", "HTTP/1.1 200\tOK\r\n\r\n", bad},
		{"NUL in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", bad},
		{"CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", bad},
		{"LF only", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", bad},
		{"nothing", "", "error"},
		{"half a line", "HTTP/1.1 20", "error"},
		// fields
		{"order and names stay", cl + "b: 1\r\nA:2\r\nB:  3 \t\r\n\r\nhi", `200 b=1 A=2 B=3 "hi" end kept`},
		{"empty value", cl + "A:\r\nB: \r\n\r\nhi", `200 A= B= "hi" end kept`},
		{"obs-text", cl + "A: \xe4\xff\r\n\r\nhi", "200 A=\xe4\xff \"hi\" end kept"},
		{"tab in a value", cl + "A: b\tc\r\n\r\nhi", "200 A=b\tc \"hi\" end kept"},
		{"token characters", cl + "!#$%&'*+-.^_`|~1: x\r\n\r\nhi", "200 !#$%&'*+-.^_`|~1=x \"hi\" end kept"},
		{"colon in a value", cl + "A: b:c\r\n\r\nhi", `200 A=b:c "hi" end kept`},
		{"no colon", cl + "A\r\n\r\nhi", bad},
		{"space before the colon", cl + "A : b\r\n\r\nhi", bad},
		{"tab before the colon", cl + "A\t: b\r\n\r\nhi", bad},
		{"space in a name", cl + "A B: c\r\n\r\nhi", bad},
		{"no name", cl + ": c\r\n\r\nhi", bad},
		{"folded", cl + "A: b\r\n c\r\n\r\nhi", bad},
		{"folded with a tab", cl + "A: b\r\n\tc\r\n\r\nhi", bad},
		{"folded first", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", bad},
		{"NUL in a value", cl + "A: b\x00c\r\n\r\nhi", bad},
		{"NUL in a name", cl + "A\x00: b\r\n\r\nhi", bad},
		{"CR in a value", cl + "A: b\rB: c\r\n\r\nhi", bad},
		{"CR CR LF", cl + "A: b\r\r\n\r\nhi", bad},
		{"LF in the fields", cl + "A: b\nB: c\r\n\r\nhi", bad},
		{"LF LF at the end", cl + "A: b\r\n\nhi", bad},
		{"bell", cl + "A: \a\r\n\r\nhi", bad},
		{"DEL", cl + "A: \x7f\r\n\r\nhi", bad},
		{"obs-text in a name", cl + "\xe4: b\r\n\r\nhi", bad},
		{"closed within the head", h + "A: b\r\n", "error"},
		{"head as large as it may be", cl + "A: " + strings.Repeat("x", 1400) + "\r\n\r\nhi", "200 A=" + strings.Repeat("x", 1400) + ` "hi" end kept`},
		{"head too large", cl + "A: " + strings.Repeat("x", long) + "\r\n\r\nhi", bad},
		{"head too large in many fields", cl + strings.Repeat("A: b\r\n", long/6) + "\r\nhi", bad},
		{"head without an end", h + strings.Repeat("x", long), bad},
		// how long the body is
		{"until close", h + "\r\nhello", `200 "hello" end`},
		{"until close, empty", h + "\r\n", "200 end"},
		{"until close, keep-alive", h + "Connection: keep-alive\r\n\r\nhello", `200 "hello" end`},
		{"until close, HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", `200 "hello" end`},
		{"zero", h + "Content-Length: 0\r\n\r\n", "200 end kept"},
		{"close", cl + "Connection: close\r\n\r\nhi", `200 "hi" end`},
		{"close among others", cl + "Connection: x, Close\r\n\r\nhi", `200 "hi" end`},
		{"close in a second field", cl + "Connection: x\r\nConnection: close\r\n\r\nhi", `200 "hi" end`},
		{"closed is not close", cl + "Connection: closed\r\n\r\nhi", `200 "hi" end kept`},
		{"more than the length", cl + "\r\nhi!", `200 "hi" end`},
		{"a second answer", cl + "\r\nhi" + cl + "\r\nho", `200 "hi" end`},
		{"less than the length", h + "Content-Length: 5\r\n\r\nhi", `200 "hi" cut error`},
		{"nothing of the length", h + "Content-Length: 5\r\n\r\n", `200 cut error`},
		{"leading zeros", h + "Content-Length: 002\r\n\r\nhi", `200 "hi" end kept`},
		{"two lengths", cl + "Content-Length: 2\r\n\r\nhi", bad},
		{"two different lengths", cl + "Content-Length: 3\r\n\r\nhi", bad},
		{"list of lengths", h + "Content-Length: 2, 2\r\n\r\nhi", bad},
		{"empty length", h + "Content-Length:\r\n\r\nhi", bad},
		{"signed length", h + "Content-Length: +2\r\n\r\nhi", bad},
		{"negative length", h + "Content-Length: -2\r\n\r\nhi", bad},
		{"hexadecimal length", h + "Content-Length: 0x2\r\n\r\nhi", bad},
		{"space in a length", h + "Content-Length: 1 2\r\n\r\nhi", bad},
		{"length beyond 63 bits", h + "Content-Length: 99999999999999999999\r\n\r\nhi", bad},
		{"both", cl + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", bad},
		{"both, zero", h + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", bad},
		{"gzip, chunked", h + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", bad},
		{"identity", h + "Transfer-Encoding: identity\r\n\r\nhi", bad},
		{"chunked twice", h + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", bad},
		{"chunked in two fields", h + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", bad},
		{"chunked with a parameter", h + "Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n", bad},
		{"no coding", h + "Transfer-Encoding:\r\n\r\nhi", bad},
		{"chunked by a vertical tab", h + "Transfer-Encoding: \vchunked\r\n\r\nhi", bad},
		{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", bad},
		// chunks
		{"chunked", te + "2\r\nhi\r\n0\r\n\r\n", `200 "hi" end kept`},
		{"Chunked", h + "Transfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", `200 "hi" end kept`},
		{"several", te + "1\r\nh\r\n00002\r\nel\r\nA\r\n0123456789\r\n0\r\n\r\n", `200 "hel0123456789" end kept`},
		{"extensions", te + "2;a=b;c=\"d\"\r\nhi\r\n0 ; x\r\n\r\n", `200 "hi" end kept`},
		{"space after a size", te + "2 \r\nhi\r\n0\t\r\n\r\n", `200 "hi" end kept`},
		{"trailers", te + "2\r\nhi\r\n0\r\nA: b\r\nc:d\r\n\r\n", `200 "hi" end A=b c=d kept`},
		{"chunked, close", h + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200 end"},
		{"more after the last chunk", te + "0\r\n\r\nHTTP", "200 end"},
		{"no last chunk", te + "2\r\nhi\r\n", `200 "hi" cut error`},
		{"no end of the trailers", te + "2\r\nhi\r\n0\r\n", `200 "hi" cut error`},
		{"half a chunk", te + "5\r\nhi", `200 "hi" cut error`},
		{"no size", te + "\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"no digit", te + "x\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"space before a size", te + " 2\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"signed size", te + "+2\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"0x", te + "0x2\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"size beyond 60 bits", te + "1000000000000002\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"LF after a size", te + "2\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"CR without LF after a size", te + "2\rhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"no CR LF after a chunk", te + "2\r\nhi0\r\n\r\n", `200 "hi" cut ` + bad},
		{"LF after a chunk", te + "2\r\nhi\n0\r\n\r\n", `200 "hi" cut ` + bad},
		{"word after a size", te + "2 x\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"NUL in an extension", te + "2;\x00\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"LF in an extension", te + "2;a\nb\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"endless extension", te + "2;" + strings.Repeat("x", 2*syntax.MaxChunkLine) + "\r\nhi\r\n0\r\n\r\n", "200 cut " + bad},
		{"bad trailer", te + "0\r\nA b\r\n\r\n", "200 cut " + bad},
		{"folded trailer", te + "0\r\nA: b\r\n c\r\n\r\n", "200 cut " + bad},
		{"LF in the trailers", te + "0\r\nA: b\nC: d\r\n\r\n", "200 cut " + bad},
		{"LF at the end of the trailers", te + "0\r\n\n", "200 cut " + bad},
		{"trailers too large", te + "0\r\nA: " + strings.Repeat("x", long) + "\r\n\r\n", "200 cut " + bad},
		// answers that have no body, and those before the answer
		{"204", "HTTP/1.1 204 X\r\n\r\n", "204 end kept"},
		{"204 that says 0", "HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n", "204 end kept"},
		{"204 that says more", "HTTP/1.1 204 X\r\nContent-Length: 2\r\n\r\nhi", "204 end"},
		{"204 chunked", "HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "204 end"},
		{"304 with a length", "HTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n", "304 end kept"},
		{"304 chunked", "HTTP/1.1 304 X\r\nTransfer-Encoding: chunked\r\n\r\n", "304 end kept"},
		{"103", "HTTP/1.1 103 X\r\nLink: a\r\n\r\n" + cl + "\r\nhi", `103 Link=a 200 "hi" end kept`},
		{"102 and 103", "HTTP/1.1 102 X\r\n\r\nHTTP/1.1 103 X\r\nA: b\r\n\r\n" + cl + "C: d\r\n\r\nhi", `102 103 A=b 200 C=d "hi" end kept`},
		{"100 nobody asked for", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + cl + "\r\nhi", `200 "hi" end kept`},
		{"103 and nothing", "HTTP/1.1 103 X\r\n\r\n", "103 error"},
		{"103 and garbage", "HTTP/1.1 103 X\r\n\r\nhello\r\n", "103 " + bad},
		{"too many before", strings.Repeat("HTTP/1.1 100 X\r\n\r\n", 2*maxInforms), bad},
		{"101", "HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\nearly", "101 Upgrade=x"},
	}
}

// answering is an address that says the bytes as they are told to, then ends its side and waits for ours.
func answering(t *testing.T, say func(c net.Conn)) string {
	return listen(t, func(c net.Conn) {
		readRequest(c)
		say(c)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	})
}

func TestAnswers(t *testing.T) {
	if n := len(rows()); n < 80 {
		t.Fatalf("%d rows", n)
	}
	for _, tc := range rows() {
		for way, say := range map[string]func(c net.Conn){
			"at once":      func(c net.Conn) { _, _ = io.WriteString(c, tc.answer) },
			"byte by byte": func(c net.Conn) { byBytes(c, tc.answer) },
		} {
			t.Run(tc.name+" "+way, func(t *testing.T) {
				if way == "byte by byte" && strings.HasSuffix(tc.want, " end") && strings.HasPrefix(tc.name, "more") {
					t.Skip("what comes later is found when the connection is taken again")
				}
				ps := NewPools(Settings{HeadMax: 1500, Read: 5 * time.Second}, nil)
				defer ps.Close()
				p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: answering(t, say)})
				got := outcome(ps, p.Link.(*Pool), ps.Open(t.Context(), p, false), get())
				if tc.name == "a second answer" {
					got = strings.TrimSuffix(got, " kept") // the same
				}
				if got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
			})
		}
	}
}

// byBytes writes in pieces that mostly arrive alone.
func byBytes(c net.Conn, s string) {
	_ = c.(*net.TCPConn).SetNoDelay(true)
	for i := range len(s) {
		if _, err := c.Write([]byte{s[i]}); err != nil {
			return
		}
	}
}

func TestHeadRequests(t *testing.T) {
	for _, tc := range []row{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 end kept"},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 end kept"},
		{"neither", "HTTP/1.1 200 OK\r\n\r\n", "200 end kept"},
		{"a body all the same", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			say := func(c net.Conn) { _, _ = io.WriteString(c, tc.answer) }
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: answering(t, say)})
			r := get()
			r.Method = []byte(http.MethodHead)
			if got := outcome(ps, p.Link.(*Pool), ps.Open(t.Context(), p, false), r); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestHeadless(t *testing.T) {
	for _, tc := range []row{
		{"a line", "hello\n", `9 "hello\n" end`},
		{"less than a version", "HT", `error`},
		{"a version that is none", "HTTP/9", `9 "HTTP/9" end`},
		{"nothing", "", "error"},
		{"a bad first line", "HTTP/1.1 x\r\n\r\n", "invalid_header"},
		{"after a hint", "HTTP/1.1 103 X\r\n\r\nhello", "103 invalid_header"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ps := NewPools(Settings{}, nil)
			defer ps.Close()
			say := func(c net.Conn) { _, _ = io.WriteString(c, tc.answer) }
			p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: answering(t, say)})
			b := ps.Opener(Wire{Headless: true}).Open(t.Context(), p, false)
			if got := outcome(ps, p.Link.(*Pool), b, get()); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// On a kept connection what is no HTTP can only be left of another answer.
func TestHeadlessOnlyOnAFreshConnection(t *testing.T) {
	ps := NewPools(Settings{}, nil)
	defer ps.Close()
	addr := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		readRequest(c)
		_, _ = io.WriteString(c, "left of it")
	})
	p, _ := peerAt(t, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
	o := ps.Opener(Wire{Headless: true})
	for _, want := range []string{`200 "ok" end kept`, "invalid_header"} {
		if got := outcome(ps, p.Link.(*Pool), o.Open(t.Context(), p, false), get()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
