package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// reply reads one answer after the other from the bytes of a connection. The zero value waits for a head.
type reply struct {
	head []byte // of an answer, as far as it has come
	left int    // of its body, once the head is complete
	body bool
}

// maxHead is the longest head of an answer, in bytes.
const maxHead = 16 << 10

// feed takes what came and says whether the answer is complete. Bytes after its end are an error, since nothing more was asked for.
func (r *reply) feed(b []byte, length int) (done bool, err error) {
	if !r.body {
		if b, err = r.begin(b, length); err != nil || !r.body {
			return false, err
		}
	}
	return r.skip(len(b))
}

// skip is feed for n bytes of a body that nobody has looked at.
func (r *reply) skip(n int) (done bool, err error) {
	if r.left -= n; r.left < 0 {
		return false, fmt.Errorf("%d bytes after the end of an answer", -r.left)
	}
	if r.left > 0 {
		return false, nil
	}
	r.body = false
	return true, nil
}

// begin looks for the end of the head and returns what follows it.
func (r *reply) begin(b []byte, length int) ([]byte, error) {
	if len(r.head) > 0 {
		b = append(r.head, b...)
	}
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		if len(b) > maxHead {
			return nil, fmt.Errorf("a head of more than %d bytes", maxHead)
		}
		r.head = bytes.Clone(b)
		return nil, nil
	}
	if err := check(b[:end+2], length); err != nil {
		return nil, err
	}
	r.head, r.left, r.body = nil, length, true
	return b[end+4:], nil
}

// check wants the status 200, the length, and a connection that stays open.
func check(head []byte, length int) error {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("answered %q, wanted HTTP/1.1 200", line)
	}
	got := -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) < 10 || line[0]|0x20 != 'c' {
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			n, err := strconv.Atoi(string(value))
			if err != nil {
				return fmt.Errorf("field %q: wanted a length", line)
			}
			got = n
		case bytes.EqualFold(name, []byte("connection")) && bytes.EqualFold(value, []byte("close")):
			return errors.New("the proxy closes the connection after an answer")
		}
	}
	if got != length {
		return fmt.Errorf("Content-Length is %d (-1: absent), wanted %d", got, length)
	}
	return nil
}
