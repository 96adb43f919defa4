package syntax

import (
	"bytes"
	"testing"
)

// FuzzNext: a line that is read in one pass is what Split says of it, and no good one is left to Split.
func FuzzNext(f *testing.F) {
	for _, s := range []string{
		"A: b\r\n", "Accept-Encoding: gzip, br\r\nB: c\r\n\r\n", "A:\t \r\n", "A:b", "A: b\r", "A: b\r\r\n", "A: b\n", "A: 1\x7f345678\r\n", "A: \t12345678\t12345678 \t \r\n",
		" A: b\r\n", "\r\n", ":\r\n", "A b: c\r\n", "A: \xff\x80\xfe\r\n", "A: \x00\r\n", "", "A", "A:", "A: 12345678\r\n\x01",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		name, value, n, plain := NextPlain(b)
		if plain != (n > 0 && All(name, Plain)) {
			t.Fatalf("%q: plain %v", b, plain)
		}
		end := bytes.IndexByte(b, '\n')
		if n != 0 && n != end+1 {
			t.Fatalf("%q: %d bytes", b, n)
		}
		if end < 2 || b[end-1] != '\r' {
			if n != 0 {
				t.Fatalf("%q: is no line", b)
			}
			return
		}
		wantName, wantValue, err := Split(b[:end-1])
		if (err == nil) != (n != 0) || !bytes.Equal(name, wantName) || !bytes.Equal(value, wantValue) {
			t.Fatalf("%q: %q, %q, %d; Split says %q, %q, %v", b, name, value, n, wantName, wantValue, err)
		}
	})
}

// TestEqual: only letters have another case.
func TestEqual(t *testing.T) {
	for _, name := range []string{"az-09", "az-09-za", "transfer-0-encoding-z"} {
		for at := range len(name) {
			for c := range 256 {
				have := []byte(name)
				have[at] = byte(c)
				letter := name[at] >= 'a'
				if want := byte(c) == name[at] || letter && byte(c) == name[at]-0x20; Equal(have, name) != want {
					t.Errorf("%q: %v", have, !want)
				}
			}
		}
	}
	if Equal([]byte("a"), "ab") || Equal(nil, "a") || !Equal([]byte("aB"), "ab") {
		t.Error("lengths")
	}
}

var lines = []byte("Host: shop.example\r\nConnection: keep-alive\r\nsec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\nSec-Fetch-Site: none\r\n" +
	"Sec-Fetch-Mode: navigate\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-US,en;q=0.9\r\nCookie: session=0123456789abcdef\r\nDNT: 1\r\n\r\n")

// BenchmarkNext reads the twelve fields of a browser.
func BenchmarkNext(b *testing.B) {
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		for at := 0; ; {
			_, _, n := Next(lines[at:])
			if n == 0 {
				break
			}
			at += n
		}
	}
}

// BenchmarkSplit is BenchmarkNext with a search for each line's end first.
func BenchmarkSplit(b *testing.B) {
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		for at := 0; ; {
			end := bytes.IndexByte(lines[at:], '\n')
			if end < 2 {
				break
			}
			if _, _, err := Split(lines[at : at+end-1]); err != nil {
				b.Fatal(err)
			}
			at += end + 1
		}
	}
}
