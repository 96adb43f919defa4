package listener

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
)

// Kinds of records, as the metric of records counts them.
const (
	kindBeat    = "beat"
	kindPulse   = "pulse"
	kindBad     = "bad"
	kindControl = "control" // a marker that Kafka's transactions leave in the log
)

// What is kept of a bad record.
const (
	maxRejectedKey    = 255
	maxRejectedDetail = 1024
	maxRejectedValue  = 2 << 10
)

// raw is a record as it came from the log. The slices belong to whoever holds it.
type raw struct {
	offset     int64
	key, value []byte
}

// read takes a record for what it is: exactly one of the results is set, or none for a control record. receivedAt is
// Unix µs.
func read(r raw, receivedAt int64) (rec registry.Record, bad *registry.Rejected, kind string) {
	rec.Offset = r.offset
	if isControl(r.key) {
		return rec, nil, kindControl
	}
	if string(r.key) == pulseKey {
		p, err := decodePulse(r.value)
		if err != nil {
			return rec, reject(r, registry.RejectedPulse, err.Error(), receivedAt), kindBad
		}
		rec.Pulse = &p
		return rec, nil, kindPulse
	}
	s, reason, err := decodeBeat(r, receivedAt)
	if err != nil {
		return rec, reject(r, reason, err.Error(), receivedAt), kindBad
	}
	rec.Sighting = s
	return rec, nil, kindBeat
}

// decodeBeat also survives a decoder that panics: one record must never stop the stream.
func decodeBeat(r raw, receivedAt int64) (s *registry.Sighting, reason string, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, reason, err = nil, registry.RejectedPanic, fmt.Errorf("decoding panicked: %v", p)
		}
	}()
	b, err := heartbeat.DecodeRecord(r.key, r.value)
	if err == nil {
		return sighting(&b, receivedAt), "", nil
	}
	var invalid *heartbeat.InvalidError
	if errors.As(err, &invalid) {
		return nil, string(invalid.Reason), err
	}
	return nil, registry.RejectedInvalid, err
}

// isControl recognises a transaction marker, whose key is two 16-bit numbers: version 0 and commit or abort. The client
// hands it out like a record. No beat's or pulse's key begins with a zero byte.
func isControl(key []byte) bool {
	return len(key) == 4 && key[0] == 0 && key[1] == 0 && key[2] == 0 && key[3] <= 1
}

// reject keeps what an operator needs of a bad record, cut to what the registry can hold and in memory of its own, so
// that many large ones in a row cost little.
func reject(r raw, reason, detail string, at int64) *registry.Rejected {
	return &registry.Rejected{
		Offset: r.offset,
		Key:    cut(printable(string(r.key)), maxRejectedKey),
		Reason: reason,
		Detail: cut(printable(detail), maxRejectedDetail),
		Value:  append([]byte{}, r.value[:min(len(r.value), maxRejectedValue)]...),
		At:     at,
	}
}

// printable makes any bytes fit a text column: valid UTF-8 and no zero byte.
func printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}
