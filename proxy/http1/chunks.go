package http1

import (
	"bytes"
	"errors"

	"github.com/upstrand/upstrand/proxy/forward"
)

// What can be wrong with a body in chunks.
var (
	errChunkSize = errors.New("bad size of a chunk")
	errChunkLine = errors.New("bad or too long line before a chunk")
	errChunkEnd  = errors.New("a chunk is not followed by CR LF")
	errTrailer   = errors.New("too many bytes after the last chunk")
)

// maxChunkLine bounds a chunk's extensions, and maxSizeDigits its size.
const (
	maxChunkLine  = 4096
	maxSizeDigits = 15
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

// dechunker takes a body out of its chunks, byte by byte as far as framing goes, so that it needs no buffer.
type dechunker struct {
	state   chunkState
	digits  int
	skipped int   // bytes of extensions in this line
	left    int64 // of the chunk
	room    int   // bytes that may still come after the last chunk
	line    []byte
	trailer []forward.Field
}

func newDechunker(room int) dechunker { return dechunker{room: room} }

// decode reads src and puts what is body into dst, which may be the same bytes. It stops at the end of the body or when
// dst is full.
func (d *dechunker) decode(dst, src []byte) (wrote, read int, err error) {
	for read < len(src) && d.state != chunkEnd {
		if d.state == chunkData {
			n := min(int64(len(src)-read), int64(len(dst)-wrote), d.left)
			if n == 0 {
				return wrote, read, nil
			}
			copy(dst[wrote:], src[read:read+int(n)])
			wrote, read = wrote+int(n), read+int(n)
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
func (d *dechunker) framing(c byte) error {
	switch d.state {
	case chunkSize:
		return d.size(c)
	case chunkPad, chunkExt:
		return d.extension(c)
	case chunkLF:
		if c != '\n' {
			return errChunkLine
		}
		d.state = chunkData
		if d.left == 0 {
			d.state = chunkTrailer
		}
		d.digits, d.skipped = 0, 0
	case chunkDataCR:
		if c != '\r' {
			return errChunkEnd
		}
		d.state = chunkDataLF
	case chunkDataLF:
		if c != '\n' {
			return errChunkEnd
		}
		d.state = chunkSize
	}
	return nil
}

func (d *dechunker) size(c byte) error {
	v := hexValue(c)
	switch {
	case v >= 0:
		if d.digits++; d.digits > maxSizeDigits {
			return errChunkSize
		}
		d.left = d.left<<4 | int64(v)
	case d.digits == 0:
		return errChunkSize
	case c == '\r':
		d.state = chunkLF
	case c == ';', c == ' ', c == '\t':
		d.state = chunkPad
		return d.extension(c)
	default:
		return errChunkSize
	}
	return nil
}

func (d *dechunker) extension(c byte) error {
	d.skipped++
	switch {
	case c == '\r':
		d.state = chunkLF
	case d.skipped > maxChunkLine, chars[c]&inValue == 0:
		return errChunkLine
	case d.state == chunkExt:
	case c == ';':
		d.state = chunkExt
	case c != ' ' && c != '\t':
		return errChunkLine
	}
	return nil
}

func hexValue(c byte) int {
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
func (d *dechunker) trailerBytes(b []byte) (int, error) {
	n := len(b)
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		n = end + 1
	}
	if d.room -= n; d.room < 0 {
		return n, errTrailer
	}
	d.line = append(d.line, b[:n]...)
	if end < 0 {
		return n, nil
	}
	line := d.line
	d.line = nil
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return n, errBareLF
	}
	if line = line[:len(line)-2]; len(line) == 0 {
		d.state = chunkEnd
		return n, nil
	}
	name, value, err := splitField(line)
	if err == nil {
		d.trailer = append(d.trailer, forward.Field{Name: name, Value: value})
	}
	return n, err
}
