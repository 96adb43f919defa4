package wire

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
)

// frame is a frame of RFC 6455.
type frame struct {
	fin  bool
	code byte // opcode
	data []byte
}

// Opcodes.
const (
	opMore  = 0
	opText  = 1
	opBytes = 2
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// bytes is the frame as it goes over the wire; the client's are masked.
func (f frame) bytes(masked bool) []byte {
	b := []byte{f.code, 0}
	if f.fin {
		b[0] |= 0x80
	}
	switch n := len(f.data); {
	case n < 126:
		b[1] = byte(n)
	case n < 1<<16:
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] = 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if !masked {
		return append(b, f.data...)
	}
	b[1] |= 0x80
	var key [4]byte
	_, _ = rand.Read(key[:])
	b = append(b, key[:]...)
	at := len(b)
	b = append(b, f.data...)
	for i := range f.data {
		b[at+i] ^= key[i%4]
	}
	return b
}

// readFrame reads one frame.
func readFrame(in *bufio.Reader) (frame, error) {
	var head [2]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{fin: head[0]&0x80 != 0, code: head[0] & 0x0f}
	if head[0]&0x70 != 0 {
		return f, fmt.Errorf("reserved bits in %#x", head[0])
	}
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		var b [2]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return f, err
		}
		size = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return f, err
		}
		size = binary.BigEndian.Uint64(b[:])
	}
	if size > 64<<20 {
		return f, fmt.Errorf("a frame of %d bytes", size)
	}
	var key [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(in, key[:]); err != nil {
			return f, err
		}
	}
	f.data = make([]byte, size)
	if _, err := io.ReadFull(in, f.data); err != nil {
		return f, err
	}
	for i := range f.data {
		f.data[i] ^= key[i%4]
	}
	return f, nil
}
