package main

import (
	"fmt"
	"strings"
)

// request is the bytes of one HTTP/1.1 request.
func request(p plan) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip, br\r\n", p.method, p.path, p.host)
	if p.body > 0 {
		b = fmt.Appendf(b, "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n", p.body)
	}
	b = append(b, "\r\n"...)
	return append(b, strings.Repeat("b", p.body)...)
}
