package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// sentinel goes behind all that is generated: where it comes out shows where a proxy believes that a request begins.
const sentinel = "GET /sentinel HTTP/1.1\r\nHost: sentinel\r\nConnection: close\r\n\r\n"

// payload is what is sent for a number, without the sentinel.
func payload(seed, number uint64) string {
	g := &generator{rand.New(rand.NewPCG(seed, number))}
	var b strings.Builder
	for range 1 + g.IntN(3) {
		b.WriteString(g.request())
	}
	text := b.String()
	if g.one(3) {
		for range 1 + g.IntN(3) {
			text = g.mutate(text)
		}
	}
	return text
}

type generator struct{ *rand.Rand }

// one is true once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// often gives the first once in every n-1 of n times, else one of the others.
func (g *generator) often(n int, usual string, others ...string) string {
	if !g.one(n) {
		return usual
	}
	return g.pick(others...)
}

func (g *generator) request() string {
	var b strings.Builder
	if g.one(20) {
		b.WriteString(g.pick("\r\n", "\n", "\r", "\r\n\r\n", " ", "\x00"))
	}
	method := g.often(3, g.pick("GET", "POST"), "HEAD", "PUT", "OPTIONS", "DELETE", "PATCH", "get", "G", "FROB", "M-SEARCH", "GE T", "GET\x00", "PROPFIND", "TRACE", "CONNECT", "")
	version := g.often(8, "HTTP/1.1", "HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.1 ", "HTTP/01.1", "HTTP/1", "")
	space := func() string { return g.often(40, " ", "  ", "\t", "\v", "") }
	b.WriteString(method + space() + g.target() + space() + version + g.eol())
	body, framing := g.body()
	lines := append(framing, g.host()...)
	for range g.IntN(4) {
		lines = append(lines, g.field())
	}
	g.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		b.WriteString(line + g.eol())
	}
	b.WriteString(g.eol())
	b.WriteString(body)
	return b.String()
}

func (g *generator) eol() string {
	return g.often(60, "\r\n", "\n", "\r", "\r\r\n", "\n\r\n", "\r\n ", " \r\n", "\x00\r\n")
}

func (g *generator) target() string {
	path := g.often(3, g.pick("/", "/a", "/a/b?c=d"), "/a%2fb", "/a//b", "/a/../b", "/../b", "/%2e%2e/b", "/a%00", "/a%zz", "/a%", "/a?b#c", "/a#b", "/\xc3\xa9",
		"/a b", "/a\tb", "/a\x01", "/a\x7f", "/a?", "/?a=http://b/", "/a;b", "/a\\b", "/\"<>", "/{a}", "/a?b c", "/"+strings.Repeat("x", g.IntN(3000)))
	if g.one(10) {
		authority := g.often(3, g.pick("a", "b.example:81"), "", "u@a", "A", "[::1]", "[::1]:80", "a:", "a:b", "a b", "a\\b", ":80", "a%00b", "a,b")
		path = g.often(6, "http", "HTTP", "https", "ftp", "ws", "http:http", "") + g.often(8, "://", ":/", ":", "//", ":///") + authority + g.pick(path, path, "", "?a")
	}
	return g.often(30, path, "*", "a", "a:80", "", "?a", "http://a", "//a/b", "/a HTTP/1.1", "*/a", "http:///a")
}

func (g *generator) host() []string {
	h := "Host: " + g.often(6, g.pick("a", "b.example", "b.example:8080"), "", "A", "a:", "a:b", "a:1:2", ":80", "u@a", "a b", "a, b", "a/b", "a?b", "a#b", "[::1]", "[::1]:80", "[::1", "[a]", "a\x00", "a\tb", "\xc3\xa9", "a..b", "-", "a_b", "a%20b", "1.2.3.4", "a;b", "a\"b", ".a", "a.")
	switch g.IntN(30) {
	case 0:
		return nil
	case 1:
		return []string{h, g.pick(h, "Host: other", "host: other", "Host : other", "HOST:x")}
	case 2:
		return []string{g.pick("Host", "host", "Host:", "Host :a", " Host: a", "H\x00ost: a", "Host:\ta", "Host:a \t")}
	}
	return []string{h}
}

func (g *generator) field() string {
	name := g.often(4, g.pick("X-A", "X-B", "x-a", "Accept"), "Connection", "X_A", "X A", "X-A ", "", "X:A", "X-\x01", "X-\xe9", "Keep-Alive", "TE", "Upgrade", "Proxy-Connection", "Trailer", "X-Forwarded-For", "Transfer-Encoding2", "Content_Length", "Content-Length ", "Transfer-Encoding ", "X!#$%", "Range", "If-Match", "Authorization", "Cookie")
	value := g.often(4, g.pick("1", "two words", "a, b"), "", "a\x00b", "a\rb", "a\nb", "a\x7f", "a\x0bb", "\xff", "a\r\n b", "a\tb", "close", "keep-alive", "X-A", "Content-Length", "Host", "Transfer-Encoding", "trailers", "websocket", "h2c", strings.Repeat("y", g.IntN(4000)), "\"", "a;b=c")
	return name + g.often(10, ": ", ":", " : ", ":\t", "\t:", ":  ", " ") + value + g.often(15, "", " ", "\t", " \t ")
}

// body gives a body with the fields that frame it, rightly or not.
func (g *generator) body() (string, []string) {
	if g.one(2) {
		return "", nil
	}
	data := g.pick("", "hello", "0\r\n\r\n", "GET /hidden HTTP/1.1\r\nHost: hidden\r\n\r\n", strings.Repeat("z", g.IntN(300)))
	if g.one(2) {
		n := len(data)
		if g.one(10) {
			n += g.IntN(5) - 2
		}
		text := g.often(5, fmt.Sprint(n), fmt.Sprintf("+%d", n), fmt.Sprintf("-%d", n), fmt.Sprintf("0x%x", n), fmt.Sprintf("0%d", n), fmt.Sprintf("%d ", n),
			fmt.Sprintf("%d, %d", n, n), fmt.Sprintf("%d %d", n, n), fmt.Sprintf("%d\x00", n), fmt.Sprintf("%d.0", n), "", "18446744073709551616", "9223372036854775807", fmt.Sprintf("%d,", n), fmt.Sprintf("\"%d\"", n), fmt.Sprintf("\x0b%d", n), fmt.Sprintf("1844674407370955161%d", n))
		out := []string{g.often(12, "Content-Length", "content-length", "Content-Length ", "Content_Length", " Content-Length", "Content-Length\x00") + ": " + text}
		if g.one(12) {
			out = append(out, g.pick("Content-Length: "+fmt.Sprint(n), "Content-Length: 0", "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Transfer-Encoding : chunked", "Transfer_Encoding: chunked", "Transfer-Encoding:\x0bchunked"))
		}
		return data, out
	}
	coding := g.often(4, "chunked", "Chunked", "CHUNKED", " chunked", "chunked ", "\tchunked", "chunked, chunked", "gzip, chunked", "chunked, gzip", "gzip", "identity", "chunked;q=1", "\"chunked\"", "", ",", "chunked,", ",chunked", "xchunked", "chunkedx", "chun\x00ked", "chunked\x0b", "\x0bchunked", "identity, chunked")
	out := []string{g.often(10, "Transfer-Encoding", "transfer-encoding", "Transfer-Encoding ", "Transfer_Encoding", "TRANSFER-ENCODING", " Transfer-Encoding") + ":" + g.often(20, " ", "", "\t", "\r\n ") + coding}
	if g.one(10) {
		out = append(out, g.pick("Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Transfer-Encoding: identity", "Content-Length: x"))
	}
	return g.chunks(data), out
}

func (g *generator) chunks(data string) string {
	var b strings.Builder
	for data != "" {
		n := 1 + g.IntN(len(data))
		size := g.often(12, fmt.Sprintf("%x", n), fmt.Sprintf("%X", n), fmt.Sprintf("00%x", n), fmt.Sprintf("0x%x", n), fmt.Sprintf("+%x", n), fmt.Sprintf("-%x", n), fmt.Sprintf(" %x", n), fmt.Sprintf("%x ", n), fmt.Sprintf("%x\t", n),
			fmt.Sprintf("%xg", n), fmt.Sprintf("1000000000000000%x", n), fmt.Sprintf("10000000%08x", n), fmt.Sprintf("%x_", n), fmt.Sprintf("%x", n+1), fmt.Sprintf("%x", n-1), "", fmt.Sprintf("%x,", n))
		b.WriteString(size + g.extension() + g.eol() + data[:n] + g.often(25, "\r\n", "\n", "\r", "", "XX", "\r\n\r\n", "\r\r\n"))
		data = data[n:]
	}
	b.WriteString(g.often(25, "0", "00", "000000", "", "-0", "0x0", " 0") + g.extension() + g.eol())
	for range g.IntN(8) - 5 {
		b.WriteString(g.pick("X-T: 1", "Content-Length: 5", "X-T : 1", "X T", " folded", "Host: b", ": x", "X-T: a\x00", "GET /hidden HTTP/1.1", "Transfer-Encoding: chunked") + g.eol())
	}
	b.WriteString(g.eol())
	return b.String()
}

func (g *generator) extension() string {
	return g.often(6, "", ";", ";a", ";a=b", ";a=\"b\"", " ;a", ";a\n", ";a\rb", ";a\x00", ";\"a\r\nb\"", ";a=\"\n\"", ";"+strings.Repeat("e", g.IntN(200)), " a", "\t; a = b")
}
