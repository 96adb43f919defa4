package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types and flags of frames, and settings (RFC 9113, sections 6 and 11).
const (
	frameData, frameHeaders, frameReset, frameSettings byte = 0, 1, 3, 4
	framePing, frameGoAway, frameWindow                byte = 6, 7, 8
	frameContinuation                                  byte = 9

	flagEndStream, flagAck, flagEndHeaders, flagPadded, flagPriority byte = 1, 1, 4, 8, 0x20

	settingPush, settingWindow uint16 = 2, 4

	frameHead  = 9
	maxWindow  = 1<<31 - 1
	maxPayload = 16 << 10 // we do not allow more
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// cut takes the first frame off b. ok is false when it has not come completely.
func cut(b []byte) (f frame, rest []byte, ok bool, err error) {
	if len(b) < frameHead {
		return f, b, false, nil
	}
	n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if n > maxPayload {
		return f, b, false, fmt.Errorf("a frame of %d bytes, allowed: up to %d", n, maxPayload)
	}
	if len(b) < frameHead+n {
		return f, b, false, nil
	}
	f = frame{kind: b[3], flags: b[4], stream: binary.BigEndian.Uint32(b[5:]) & maxWindow, payload: b[frameHead : frameHead+n]}
	return f, b[frameHead+n:], true, nil
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// opening is what a client sends first: no pushes, and windows so wide that bodies hardly ever wait.
func opening() []byte {
	s := binary.BigEndian.AppendUint16(nil, settingPush)
	s = binary.BigEndian.AppendUint32(s, 0)
	s = binary.BigEndian.AppendUint16(s, settingWindow)
	s = binary.BigEndian.AppendUint32(s, maxWindow)
	b := appendFrame([]byte(preface), frameSettings, 0, 0, s)
	return appendWindow(b, maxWindow-65535)
}

// appendWindow allows n more bytes on the connection.
func appendWindow(b []byte, n int) []byte {
	return appendFrame(b, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// block is a GET's header block. All of it is static or literal without indexing (RFC 7541, 6.2.2), so that it can be sent again and again as it stands.
func block(p plan) []byte {
	b := []byte{0x82, 0x87} // :method GET, :scheme https
	b = appendLiteral(b, 4, p.path)
	b = appendLiteral(b, 1, p.host)
	b = appendLiteral(b, 58, "bench/1.0") // user-agent
	b = appendLiteral(b, 19, "*/*")       // accept
	return append(b, 0x90)                // accept-encoding: gzip, deflate
}

// appendLiteral writes a value of up to 126 bytes for a name of the static table.
func appendLiteral(b []byte, name int, value string) []byte {
	if name < 15 {
		b = append(b, byte(name))
	} else {
		b = append(b, 15, byte(name-15))
	}
	return append(append(b, byte(len(value))), value...)
}

// ok200 says whether a header block begins with :status 200, which every encoder takes from the static table, and which comes first. Changes of the
// dynamic table's size may stand before it.
func ok200(payload []byte, flags byte) error {
	b, err := unpadded(payload, flags)
	if err != nil {
		return err
	}
	if flags&flagPriority != 0 {
		b = b[min(5, len(b)):]
	}
	for len(b) > 0 && b[0]&0xe0 == 0x20 { // a size: 5 bits, and more bytes when all of them are set
		more := b[0]&0x1f == 0x1f
		for b = b[1:]; more && len(b) > 0; b = b[1:] {
			more = b[0]&0x80 != 0
		}
	}
	if len(b) == 0 || b[0] != 0x88 {
		return fmt.Errorf("a header block that begins with %#x, wanted 0x88: :status 200", b[:min(len(b), 8)])
	}
	return nil
}

func unpadded(payload []byte, flags byte) ([]byte, error) {
	if flags&flagPadded == 0 {
		return payload, nil
	}
	if len(payload) == 0 || int(payload[0]) >= len(payload) {
		return nil, errors.New("a frame with more padding than bytes")
	}
	return payload[1 : len(payload)-int(payload[0])], nil
}
