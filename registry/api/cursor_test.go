package api

import (
	"slices"
	"strings"
	"testing"
)

func FuzzCursor(f *testing.F) {
	for kind, parts := range cursorParts {
		f.Add(kind, encodeCursor(kind, slices.Repeat([]string{"1"}, parts)...))
	}
	f.Add(cursorTopology, encodeCursor(cursorTopology, "43", "route/ü/日本"))
	f.Add(cursorServices, "czEA")
	f.Add(cursorServices, "====")
	f.Add(cursorEvents, encodeCursor(cursorEvents, "+1"))
	f.Fuzz(func(t *testing.T, kind, cursor string) {
		if _, known := cursorParts[kind]; !known {
			return
		}
		parts, err := decodeCursor(kind, cursor)
		if err != nil {
			return
		}
		if len(parts) != cursorParts[kind] || encodeCursor(kind, parts...) != cursor {
			t.Errorf("%q of kind %s decodes to %q", cursor, kind, parts)
		}
		if numbers, err := decodeNumbers(kind, cursor); err == nil && encodeNumbers(kind, numbers...) != cursor {
			t.Errorf("%q of kind %s decodes to %v", cursor, kind, numbers)
		}
	})
}

func TestACursorIsOfOneListOnly(t *testing.T) {
	for kind, parts := range cursorParts {
		cursor := encodeCursor(kind, slices.Repeat([]string{"1"}, parts)...)
		for other := range cursorParts {
			if _, err := decodeCursor(other, cursor); (err == nil) != (other == kind) {
				t.Errorf("a cursor of %s as one of %s: %v", kind, other, err)
			}
		}
	}
	if _, err := decodeCursor(cursorServices, encodeCursor(cursorServices, strings.Repeat("x", maxCursor))); err == nil {
		t.Error("a huge cursor was accepted")
	}
	if _, err := decodeCursor(cursorServices, encodeCursor(cursorServices, "a")+"\n"); err == nil {
		t.Error("a cursor with more behind it was accepted")
	}
	if _, err := decodeCursor(cursorServices, encodeCursor(cursorServices, "\xff")); err == nil {
		t.Error("a cursor that is not UTF-8 was accepted")
	}
}
