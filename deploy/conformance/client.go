package conformance

import (
	"fmt"
	"io"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"
)

// answer is what a client got.
type answer struct {
	status int // 0: nothing, 9: an answer without a status line
	fields [][2]string
	body   string
}

// values is every value of a field of the answer.
func (a *answer) values(name string) []string {
	out := []string{}
	for _, f := range a.fields {
		if strings.EqualFold(f[0], name) {
			out = append(out, f[1])
		}
	}
	return out
}

const answerTimeout = 20 * time.Second

// send makes one request over a connection of its own and reads until the server closes it. hold makes backends wait.
func send(addr string, q Request, rid, hold string) answer {
	d := net.Dialer{Timeout: answerTimeout}
	if q.ClientIP != "" && q.RealSource {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(q.ClientIP)}
	}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return answer{}
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerTimeout))
	if _, err := io.WriteString(c, requestText(q, rid, hold)); err != nil {
		return answer{}
	}
	data, err := io.ReadAll(c)
	if err != nil && len(data) == 0 {
		return answer{}
	}
	return parseAnswer(string(data))
}

func requestText(q Request, rid, hold string) string {
	head := map[string]string{}
	for k, v := range q.Headers {
		head[k] = v
	}
	if q.ClientIP != "" && !q.RealSource {
		head["X-Client-IP"] = q.ClientIP
	}
	if hold != "" {
		head["X-Hold"] = hold
	}
	names := make([]string, 0, len(head))
	for k := range head {
		names = append(names, k)
	}
	sort.Strings(names)
	var b strings.Builder
	method, path := q.Method, q.Path
	if method == "" {
		method = "GET"
	}
	if path == "" {
		path = "/"
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: t\r\nConnection: close\r\nX-Rid: %s\r\n", method, path, rid)
	for _, k := range names {
		fmt.Fprintf(&b, "%s: %s\r\n", k, head[k])
	}
	if q.Body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(*q.Body))
	}
	b.WriteString("\r\n")
	if q.Body != nil {
		b.WriteString(string(*q.Body))
	}
	return b.String()
}

func parseAnswer(data string) answer {
	head, body, _ := strings.Cut(data, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	words := strings.Fields(lines[0])
	if !strings.HasPrefix(data, "HTTP/") || len(words) < 2 {
		if data == "" {
			return answer{}
		}
		return answer{status: 9, body: data}
	}
	a := answer{body: body}
	a.status, _ = strconv.Atoi(words[1])
	for _, line := range lines[1:] {
		if name, value, ok := strings.Cut(line, ": "); ok {
			a.fields = append(a.fields, [2]string{name, value})
		}
	}
	if len(a.values("Transfer-Encoding")) > 0 {
		a.body = unchunk(body)
	}
	return a
}

func unchunk(text string) string {
	var out strings.Builder
	for text != "" {
		size, rest, _ := strings.Cut(text, "\r\n")
		size, _, _ = strings.Cut(size, ";")
		n, err := strconv.ParseInt(size, 16, 32)
		if err != nil || n == 0 || int(n) > len(rest) {
			break
		}
		out.WriteString(rest[:n])
		text = strings.TrimPrefix(rest[n:], "\r\n")
	}
	return out.String()
}
