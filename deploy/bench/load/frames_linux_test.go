package main

import (
	"bytes"
	"testing"
)

func TestFrameIsCutOnlyWhenItIsThere(t *testing.T) {
	b := appendFrame(nil, frameData, flagEndStream, 7, []byte("hello"))
	b = appendFrame(b, framePing, 0, 0, make([]byte, 8))
	for n := range 9 + 5 {
		if _, rest, ok, err := cut(b[:n]); ok || err != nil || len(rest) != n {
			t.Fatalf("%d bytes: ok is %v, %d are left, %v", n, ok, len(rest), err)
		}
	}
	f, rest, ok, err := cut(b)
	if !ok || err != nil || f.kind != frameData || f.flags != flagEndStream || f.stream != 7 || string(f.payload) != "hello" {
		t.Fatalf("got %+v, %v, %v", f, ok, err)
	}
	if f, rest, ok, _ = cut(rest); !ok || f.kind != framePing || len(rest) != 0 {
		t.Fatalf("the second is %+v, %v, %d bytes are left", f, ok, len(rest))
	}
	if _, _, _, err := cut([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1}); err == nil {
		t.Error("a frame of 64 KiB is taken")
	}
}

func TestStatusOfAHeaderBlock(t *testing.T) {
	for name, c := range map[string]struct {
		block string
		flags byte
		good  bool
	}{
		"200":                {"\x88\x76", 0, true},
		"after a table size": {"\x20\x88", 0, true},
		"after a long size":  {"\x3f\xe1\x1f\x88", 0, true},
		"after two sizes":    {"\x20\x3f\x01\x88", 0, true},
		"padded":             {"\x02\x88\x00\x00", flagPadded, true},
		"with priority":      {"\x00\x00\x00\x00\x10\x88", flagPriority, true},
		"404":                {"\x8d", 0, false},
		"status by literal":  {"\x48\x03200", 0, false},
		"empty":              {"", 0, false},
		"only a size":        {"\x3f\xff", 0, false},
		"only padding":       {"\x05\x88", flagPadded, false},
	} {
		if err := ok200([]byte(c.block), c.flags); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRequestBlock(t *testing.T) {
	got := block(plan{path: "/128", host: "a.example"})
	want := append([]byte{0x82, 0x87, 4, 4}, "/128"...)
	want = append(append(want, 1, 9), "a.example"...)
	want = append(append(want, 15, 58-15, 9), "bench/1.0"...)
	want = append(append(want, 15, 19-15, 3), "*/*\x90"...)
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
