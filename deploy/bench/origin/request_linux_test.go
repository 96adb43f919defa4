package main

import (
	"strings"
	"testing"
)

func TestRequestsInAnyPieces(t *testing.T) {
	text := "POST /3 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET /3 HTTP/1.1\r\nHost: x\r\n\r\n"
	for size := 1; size <= len(text); size++ {
		s, c := &server{answers: map[string][]byte{}}, &conn{}
		for at := 0; at < len(text); at += size {
			if err := s.take(c, []byte(text[at:min(at+size, len(text))])); err != nil {
				t.Fatalf("pieces of %d: %v", size, err)
			}
		}
		if n := strings.Count(string(c.out), "HTTP/1.1 200 OK\r\n"); n != 2 || !strings.HasSuffix(string(c.out), "\r\n\r\nxxx") {
			t.Fatalf("pieces of %d: %d answers in %q", size, n, c.out)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no request line": "hello\r\n\r\n",
		"old version":     "GET /3 HTTP/1.0\r\n\r\n",
		"odd path":        "GET /x HTTP/1.1\r\n\r\n",
		"negative path":   "GET /-1 HTTP/1.1\r\n\r\n",
		"chunks":          "POST /3 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"odd length":      "POST /3 HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"no end":          "GET /3 HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", maxHead),
	} {
		s, c := &server{answers: map[string][]byte{}}, &conn{}
		if err := s.take(c, []byte(text)); err == nil {
			t.Errorf("%s: answered with %q", name, c.out)
		}
	}
}
