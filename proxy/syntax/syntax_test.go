package syntax

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestWords: eight bytes at a time say what one at a time says, wherever the byte stands.
func TestWords(t *testing.T) {
	for c := range 256 {
		for n := range 20 {
			for at := range n {
				s := bytes.Repeat([]byte{'a'}, n)
				s[at] = byte(c)
				value, token := c == '\t' || c >= ' ' && c != 0x7f, Is(byte(c), Token)
				if IsValue(s) != value || IsToken(s) != token {
					t.Fatalf("byte %#x at %d of %d: %v %v", c, at, n, !value, !token)
				}
				for _, other := range []byte{0xff, '-', 'Z', '7', '\t', 0x7e, 0x80, ' '} { // whatever is beside it
					beside := (at + 1) % n
					if s[beside] = other; IsValue(s) != All(s, Value) || IsToken(s) != All(s, Token) {
						t.Fatalf("byte %#x at %d of %d, beside %#x: %v %v", c, at, n, other, IsValue(s), IsToken(s))
					}
				}
			}
		}
	}
	if IsToken(nil) || !IsValue(nil) {
		t.Error("nothing")
	}
}

func TestSplit(t *testing.T) {
	for line, want := range map[string]error{
		"A: b": nil, "a:b": nil, "A:": nil, "A: \t b \t": nil, "A: \xff": nil, " A: b": ErrFolded, "\tA: b": ErrFolded, "A : b": ErrFieldName, ": b": ErrFieldName, "A": ErrFieldName,
		"A\x00: b": ErrFieldName, "A(: b": ErrFieldName, "A: \x00": ErrFieldValue, "A: b\rc": ErrFieldValue, "A: \x7f": ErrFieldValue,
	} {
		name, value, err := Split([]byte(line))
		if !errors.Is(err, want) || err == nil && (strings.ToLower(string(name)) != "a" || len(bytes.Trim(value, "b")) > 1) {
			t.Errorf("%q: %q, %q, %v", line, name, value, err)
		}
	}
}

func TestLength(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "7": 7, "007": 7, "000": 0, "999999999999999999": 999999999999999999,
		"": -1, "1000000000000000000": -1, "+1": -1, "-0": -1, "0x5": -1, "5 5": -1, "5,5": -1, "1.0": -1} {
		if n, err := Length([]byte(s)); n != max(want, 0) || (err == nil) != (want >= 0) {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
}

func TestHasToken(t *testing.T) {
	for list, want := range map[string]bool{"close": true, "Close": true, "a, close": true, "a,close ,b": true, "closed": false, "a close": false, "": false, ",": false} {
		if HasToken([]byte(list), "close") != want {
			t.Errorf("%q: %v", list, !want)
		}
	}
}

// TestExcess: extensions may not be the most of a long body.
func TestExcess(t *testing.T) {
	chunk := "1;" + strings.Repeat("x", MaxChunkLine-2) + "\r\na\r\n"
	d := NewChunks(100)
	src := []byte(strings.Repeat(chunk, 20))
	if _, _, err := d.Decode(make([]byte, len(src)), src); !errors.Is(err, ErrChunkLine) {
		t.Errorf("%v", err)
	}
	d = NewChunks(100)
	src = []byte(strings.Repeat("1000;sign="+strings.Repeat("x", 80)+"\r\n"+strings.Repeat("a", 0x1000)+"\r\n", 2000))
	if n, _, err := d.Decode(make([]byte, len(src)), src); err != nil || n != 2000*0x1000 {
		t.Errorf("signed chunks: %d, %v", n, err)
	}
}

// FuzzChunks: a body is the same however its bytes arrive.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{"3\r\nabc\r\n0\r\n\r\n", "3;a=\"b\"\r\nabc\r\n0\r\nA: b\r\n\r\nrest", "0\r\n\r", "0\r\n\rX", "a \r\n0123456789\r\n0\r\n\r\n", "3\nabc", "-1\r\n", "0\r\n A: b\r\n\r\n", "fffffffffffffff\r\n"} {
		f.Add([]byte(s), byte(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, step byte) {
		one, many := NewChunks(1<<10), NewChunks(1<<10)
		whole := make([]byte, len(data))
		n, took, err := one.Decode(whole, data)
		var pieces []byte
		var errToo error
		at := 0
		for at < len(data) && !many.Done() && errToo == nil {
			p := bytes.Clone(data[at:min(at+int(step)+1, len(data))])
			var w, r int
			w, r, errToo = many.Decode(p, p)
			pieces = append(pieces, p[:w]...)
			at += r
		}
		if !bytes.Equal(whole[:n], pieces) || (err == nil) != (errToo == nil) || one.Done() != many.Done() || one.Done() && at != took || len(one.Trailer()) != len(many.Trailer()) {
			t.Fatalf("whole %q %v, in pieces %q %v", whole[:n], err, pieces, errToo)
		}
	})
}

func TestAuthority(t *testing.T) {
	for s, want := range map[string]bool{
		"shop": true, "Shop.example.:8080": true, "10.0.0.1:80": true, "[::1]": true, "[::1]:80": true, "a_b": true, "shop:": true, "xn--a": true, "a.": true,
		"a<b": false, "a b": false, "a/b": false, "a@b": false, ":80": false, "a:b": false, "a:1:2": false, "[::1": false, "[a]": false, "[::1]80": false,
		"[1.2.3.4]": false, "[fe80::1%eth0]": false, "\xff": false, "a\\b": false, "a?b": false, "a\"b": false, "": false, "a..b": false, "a%20": false, ".a": false, "..": false,
	} {
		if IsAuthority([]byte(s)) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}
