package syntax

import (
	"bytes"
	"errors"
)

// What can be wrong with a body in chunks.
var (
	ErrChunkSize = errors.New("bad size of a chunk")
	ErrChunkLine = errors.New("bad or too long line before a chunk")
	ErrChunkEnd  = errors.New("a chunk is not followed by CR LF")
	ErrTrailer   = errors.New("too many bytes after the last chunk")
)

// Bounds of what stands between the data, in bytes: a chunk's extensions, the digits of its size, and the extensions of all
// chunks beyond the length of the data that came before.
const (
	MaxChunkLine  = 4096
	maxSizeDigits = 15
	maxExcess     = 64 << 10
)

type chunkState uint8

const (
	chunkSize chunkState = iota // at the size's first digit, or within it
	chunkPad                    // in white space after the size
	chunkExt                    // in extensions, which are not passed on
	chunkLF                     // at the LF of the size's line
	chunkData
	chunkDataCR // at the CR after the data
	chunkDataLF
	chunkTrailer // in a line after the last chunk
	chunkEnd
)

// Line is a field that followed a body.
type Line struct{ Name, Value []byte }

// Chunks takes a body out of its chunks, byte by byte as far as framing goes, so that it needs no buffer.
type Chunks struct {
	state   chunkState
	digits  int
	skipped int   // bytes of extensions in this line
	excess  int64 // bytes of extensions in all lines, less those of data
	left    int64 // of the chunk
	room    int   // bytes that may still come after the last chunk
	line    []byte
	trailer []Line
}

// NewChunks begins a body. What follows its last chunk may have so many bytes.
func NewChunks(room int) Chunks { return Chunks{room: room} }

// Done tells that the body has come to its end, with what follows it.
func (d *Chunks) Done() bool { return d.state == chunkEnd }

// Trailer is what followed the body. It lives in memory of its own.
func (d *Chunks) Trailer() []Line { return d.trailer }

// Decode reads src and puts what is body into dst, which may be the same bytes. It stops at the end of the body or when
// dst is full.
func (d *Chunks) Decode(dst, src []byte) (wrote, read int, err error) {
	for read < len(src) && d.state != chunkEnd {
		if d.state == chunkData {
			n := min(int64(len(src)-read), int64(len(dst)-wrote), d.left)
			if n == 0 {
				return wrote, read, nil
			}
			copy(dst[wrote:], src[read:read+int(n)])
			wrote, read = wrote+int(n), read+int(n)
			d.excess -= n
			if d.left -= n; d.left == 0 {
				d.state = chunkDataCR
			}
			continue
		}
		if d.state == chunkTrailer {
			n, err := d.trailerBytes(src[read:])
			read += n
			if err != nil {
				return wrote, read, err
			}
			continue
		}
		if err := d.framing(src[read]); err != nil {
			return wrote, read, err
		}
		read++
	}
	return wrote, read, nil
}

// framing takes one byte between the data.
func (d *Chunks) framing(c byte) error {
	switch d.state {
	case chunkSize:
		return d.size(c)
	case chunkPad, chunkExt:
		return d.extension(c)
	case chunkLF:
		if c != '\n' {
			return ErrChunkLine
		}
		d.state = chunkData
		if d.left == 0 {
			d.state = chunkTrailer
		}
		d.digits, d.skipped = 0, 0
	case chunkDataCR:
		if c != '\r' {
			return ErrChunkEnd
		}
		d.state = chunkDataLF
	case chunkDataLF:
		if c != '\n' {
			return ErrChunkEnd
		}
		d.state = chunkSize
	}
	return nil
}

func (d *Chunks) size(c byte) error {
	v := Hex(c)
	switch {
	case v >= 0:
		if d.digits++; d.digits > maxSizeDigits {
			return ErrChunkSize
		}
		d.left = d.left<<4 | int64(v)
	case d.digits == 0:
		return ErrChunkSize
	case c == '\r':
		d.state = chunkLF
	case c == ';', c == ' ', c == '\t':
		d.state = chunkPad
		return d.extension(c)
	default:
		return ErrChunkSize
	}
	return nil
}

func (d *Chunks) extension(c byte) error {
	d.skipped++
	d.excess++
	switch {
	case c == '\r':
		d.state = chunkLF
	case d.skipped > MaxChunkLine, d.excess > maxExcess, chars[c]&Value == 0:
		return ErrChunkLine
	case d.state == chunkExt:
	case c == ';':
		d.state = chunkExt
	case c != ' ' && c != '\t':
		return ErrChunkLine
	}
	return nil
}

// Hex is the value of a hexadecimal digit; negative: it is none.
func Hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// trailerBytes takes a line, or what there is of one. What it keeps is copied.
func (d *Chunks) trailerBytes(b []byte) (int, error) {
	n := len(b)
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		n = end + 1
	}
	if d.room -= n; d.room < 0 {
		return n, ErrTrailer
	}
	if len(d.line) == 0 && end == 1 && b[0] == '\r' { // the usual end
		d.state = chunkEnd
		return n, nil
	}
	d.line = append(d.line, b[:n]...)
	if end < 0 {
		return n, nil
	}
	line := d.line
	d.line = nil
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return n, ErrBareLF
	}
	if line = line[:len(line)-2]; len(line) == 0 {
		d.state = chunkEnd
		return n, nil
	}
	name, value, err := Split(line)
	if err == nil {
		d.trailer = append(d.trailer, Line{Name: name, Value: value})
	}
	return n, err
}
