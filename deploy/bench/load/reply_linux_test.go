package main

import (
	"strings"
	"testing"
)

const answer = "HTTP/1.1 200 OK\r\nContent-Type: x\r\ncontent-length: 5\r\n\r\nhello"

func TestAnswerInAnyPieces(t *testing.T) {
	for size := 1; size <= 2*len(answer); size++ {
		var r reply
		count := 0
		for range 2 { // an answer leaves the state as it was before
			for at := 0; at < len(answer); at += size {
				done, err := r.feed([]byte(answer[at:min(at+size, len(answer))]), 5)
				if err != nil {
					t.Fatalf("pieces of %d: %v", size, err)
				}
				if done {
					count++
				}
				if done != (at+size >= len(answer)) {
					t.Fatalf("pieces of %d: done is %v at %d", size, done, at)
				}
			}
		}
		if count != 2 {
			t.Fatalf("pieces of %d: %d answers, want 2", size, count)
		}
	}
}

func TestAnswersThatDoNotCount(t *testing.T) {
	for name, text := range map[string]string{
		"status":           strings.Replace(answer, "200 OK", "502 Bad Gateway", 1),
		"version":          strings.Replace(answer, "1.1", "1.0", 1),
		"length":           strings.Replace(answer, ": 5", ": 6", 1),
		"odd length":       strings.Replace(answer, ": 5", ": five", 1),
		"no length":        "HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\nhello",
		"closes":           strings.Replace(answer, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1),
		"bytes after it":   answer + "!",
		"head without end": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", maxHead),
	} {
		var r reply
		if done, err := r.feed([]byte(text), 5); err == nil {
			t.Errorf("%s: no error, done is %v", name, done)
		}
	}
}

func TestAnswerWithoutBody(t *testing.T) {
	var r reply
	if done, err := r.feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), 0); err != nil || !done {
		t.Errorf("done is %v, %v", done, err)
	}
}
