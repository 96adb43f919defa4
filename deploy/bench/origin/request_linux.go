package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// errEnd: the proxy has closed the connection, as it may.
var errEnd = errors.New("closed by the proxy")

// maxHead is the longest head of a request, in bytes.
const maxHead = 16 << 10

// take reads on in what came. Requests that follow each other at once are answered in order.
func (s *server) take(c *conn, b []byte) error {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			c.skip -= n
			b = b[n:]
			if c.skip > 0 {
				return nil
			}
			c.finish()
			continue
		}
		if len(c.in) > 0 {
			b = append(c.in, b...)
			c.in = nil
		}
		end := bytes.Index(b, []byte("\r\n\r\n"))
		if end < 0 {
			if len(b) > maxHead {
				return fmt.Errorf("a head of more than %d bytes", maxHead)
			}
			c.in = append(c.in, b...)
			return nil
		}
		path, length, err := parse(b[:end+2])
		if err != nil {
			return err
		}
		if c.next, err = s.answer(string(path)); err != nil {
			return err
		}
		b, c.skip = b[end+4:], length
		if length == 0 {
			c.finish()
		}
	}
	return nil
}

// finish puts the answer of the request that has been read behind what is still to be written.
func (c *conn) finish() {
	if len(c.out) == 0 {
		c.out = c.next // shared by all, and only read
	} else {
		c.out = append(bytes.Clone(c.out), c.next...)
	}
	c.next = nil
}

// parse reads a head that ends with the \r\n of its last line.
func parse(head []byte) (path []byte, length int, err error) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	_, path, ok := bytes.Cut(line, []byte(" "))
	path, version, ok2 := bytes.Cut(path, []byte(" "))
	if !ok || !ok2 || string(version) != "HTTP/1.1" {
		return nil, 0, fmt.Errorf("request line %q: allowed: METHOD PATH HTTP/1.1", line)
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) < 14 || line[0]|0x20 != 'c' && line[0]|0x20 != 't' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 {
				return nil, 0, fmt.Errorf("field %q: wanted a length", line)
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			return nil, 0, fmt.Errorf("field %q: the proxies of this benchmark are to send Content-Length", line)
		}
	}
	return path, length, nil
}
