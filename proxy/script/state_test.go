package script

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
)

// TestKeep: texts stay as they are when others are kept, and what nobody has any more is no longer held.
func TestKeep(t *testing.T) {
	var s State
	s.Begin(0)
	first := s.Keep([]byte("first"))
	var all []string
	for i := range 100 {
		all = append(all, s.Keep(bytes.Repeat([]byte{byte('a' + i%26)}, 700)))
	}
	for i, text := range all {
		if text != strings.Repeat(string(rune('a'+i%26)), 700) {
			t.Errorf("%d: %q", i, text)
		}
	}
	if first != "first" {
		t.Error(first)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	large := make([]byte, 8<<10)
	for range 20_000 {
		_ = s.Keep(large)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if cap(s.kept) > mostKept || int64(after.HeapAlloc)-int64(before.HeapAlloc) > 1<<20 {
		t.Errorf("room for %d bytes, %d more on the heap", cap(s.kept), int64(after.HeapAlloc)-int64(before.HeapAlloc))
	}
}
