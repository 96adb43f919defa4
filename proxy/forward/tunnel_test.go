package forward

import (
	"bytes"
	"io"
	"testing"
)

// halting gives one part of its bytes with each Read.
type halting struct{ parts [][]byte }

func (h *halting) Read(p []byte) (int, error) {
	if len(h.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, h.parts[0])
	if h.parts[0] = h.parts[0][n:]; len(h.parts[0]) == 0 {
		h.parts = h.parts[1:]
	}
	return n, nil
}

func TestTunnelRoom(t *testing.T) {
	var room tunnelRoom
	for i, step := range []struct{ came, room int }{
		{10, tinyBuffer}, {tinyBuffer, tinyBuffer}, {smallBuffer, smallBuffer}, {tinyBuffer + 1, smallBuffer}, {100, smallBuffer}, {1, tinyBuffer},
	} {
		if got := len(room.next()); got != step.room {
			t.Errorf("read %d has room for %d, want %d", i, got, step.room)
		}
		room.read(step.came)
	}
	room.free()
	if room != (tunnelRoom{}) {
		t.Error("something was not given back")
	}
}

func TestPour(t *testing.T) {
	var want []byte
	var parts [][]byte
	for _, n := range []int{1, 5000, 100_000, 3, tinyBuffer, smallBuffer, 7} {
		part := bytes.Repeat([]byte{byte(n)}, n)
		want, parts = append(want, part...), append(parts, part)
	}
	var got bytes.Buffer
	if n, _ := pour(&got, &halting{parts}); n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes of %d, or others", n, len(want))
	}
}
