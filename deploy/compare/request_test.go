package compare

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// request is one of a case's requests, as it stands in its .req file:
//
//	GET /path HTTP/1.1
//	Host: example.org
//	body: text            (with its Content-Length; "body: 2000*x" repeats)
//	> 302                 (what a backend answers; without these lines 200 and its name)
//	> Location: http://…
//	> body: text
//	> stream: 3
//
// An empty line ends it, lines that begin with # are left out. @listen@ and @b1@ … stand for addresses.
type request struct {
	line   int
	text   string // as it goes over the wire
	method string
	reply  reply
}

func readRequests(t *testing.T, path string, expand func(string) string) []request {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []request
	lines := strings.Split(expand(string(raw))+"\n", "\n")
	var block []string
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			block = append(block, line)
		case len(block) > 0:
			q, err := readRequest(block)
			if err != nil {
				t.Fatalf("%s:%d: %v", path, i+1-len(block), err)
			}
			q.line = i + 1 - len(block)
			out, block = append(out, q), nil
		}
	}
	return out
}

func readRequest(block []string) (request, error) {
	q := request{reply: reply{status: 200}}
	q.method, _, _ = strings.Cut(block[0], " ")
	head, body, host, told := block[0]+"\r\n", "", false, false
	for _, line := range block[1:] {
		if rest, ok := strings.CutPrefix(line, "> "); ok {
			if err := q.reply.read(rest, told); err != nil {
				return q, err
			}
			told = true
			continue
		}
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok && !strings.HasSuffix(line, ":"):
			return q, fmt.Errorf("%q is no field", line)
		case name == "body":
			body = repeated(value)
			continue
		}
		host = host || strings.EqualFold(name, "Host")
		head += line + "\r\n"
	}
	if !host && strings.HasSuffix(block[0], "HTTP/1.1") {
		head += "Host: localhost\r\n"
	}
	if body != "" {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	q.text = head + "\r\n" + body
	return q, nil
}

func (a *reply) read(text string, more bool) (err error) {
	name, value, ok := strings.Cut(text, ": ")
	switch {
	case !more:
		a.status, err = strconv.Atoi(text)
	case !ok:
		err = fmt.Errorf("%q is no field of a reply", text)
	case name == "body":
		a.body = repeated(value)
	case name == "stream":
		a.events, err = strconv.Atoi(value)
	default:
		a.fields = append(a.fields, text)
	}
	return err
}

// repeated reads "2000*x" as so many x.
func repeated(text string) string {
	if n, what, ok := strings.Cut(text, "*"); ok {
		if times, err := strconv.Atoi(n); err == nil {
			return strings.Repeat(what, times)
		}
	}
	return text
}

// answer is what a client saw.
type answer struct {
	Status int
	Fields http.Header
	Body   string
	Early  bool // the first part of a stream came before its last was sent
}

const answerTimeout = 10 * time.Second

// send makes the request over a connection of its own.
func (q request) send(t *testing.T, addr string) answer {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerTimeout))
	began := time.Now()
	if _, err := io.WriteString(c, q.text); err != nil {
		t.Fatal(err)
	}
	rd := bufio.NewReader(c)
	r, err := http.ReadResponse(rd, &http.Request{Method: q.method})
	if err != nil {
		return answer{Body: "no answer"} // such as nginx's 444
	}
	a := answer{Status: r.StatusCode, Fields: r.Header}
	if r.StatusCode == http.StatusSwitchingProtocols {
		echo := make([]byte, 5)
		_, _ = io.WriteString(c, "hello")
		_, _ = io.ReadFull(rd, echo)
		a.Body = "tunnel: " + string(echo)
		return a
	}
	if q.reply.events > 1 {
		_, _ = r.Body.Read(make([]byte, 1))
		a.Early = time.Since(began) < time.Duration(q.reply.events-1)*150*time.Millisecond
	}
	body, err := io.ReadAll(r.Body)
	a.Body = string(body)
	if err != nil {
		a.Body += fmt.Sprintf(" (cut: %v)", err)
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		if zr, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			plain, _ := io.ReadAll(zr)
			a.Body = "gzip: " + string(plain)
		}
	}
	return a
}

// roundTrip sends a whole request over a connection of its own and reads the answer.
func roundTrip(addr, text string) (int, http.Header, error) {
	c, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(4 * answerTimeout)) // held ones wait for their release
	if _, err := io.WriteString(c, text); err != nil {
		return 0, nil, err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, r.Header, err
}
