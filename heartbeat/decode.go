package heartbeat

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// field is a field of a beat, in the order of the wire format.
type field uint8

const (
	fService field = iota
	fID
	fIncarnation
	fSeq
	fSentAt
	fScheme
	fIP
	fPort
	fURL
	fStatus
	fWeight
	fMaxConns
	fMaxFails
	fFailTimeout
	fSlowStart
	fZone
	fVersion
	fTags
	fMeta
	fLoad
	fResources
	fInterval
	fStaleAfter
	numFields
)

var fieldNames = [numFields]string{
	"service", "id", "incarnation", "seq", "sent_at", "scheme", "ip", "port", "url", "status", "weight", "max_conns",
	"max_fails", "fail_timeout", "slow_start", "zone", "version", "tags", "meta", "load", "resources", "interval",
	"stale_after",
}

func fieldOf(name []byte) (field, bool) {
	for f := range numFields {
		if fieldNames[f] == string(name) {
			return f, true
		}
	}
	return 0, false
}

// fieldSet is a set of fields.
type fieldSet uint32

func (s fieldSet) has(f field) bool { return s&(1<<f) != 0 }
func (s *fieldSet) put(f field)     { *s |= 1 << f }

// Decode reads the value of a record strictly: one JSON object, no unknown field, none given twice, every value
// within its limits. The beat is in canonical form. The error is an *InvalidError that lists all problems at once;
// only a record that is no JSON object at all has just one. The beat keeps no reference to value.
func Decode(value []byte) (Beat, error) {
	switch {
	case len(value) == 0:
		return Beat{}, whole(Empty, "is empty", "", allowedRecord)
	case len(value) > MaxRecord:
		return Beat{}, tooLarge(len(value))
	case !utf8.Valid(value):
		return Beat{}, whole(NotUTF8, "is not UTF-8 text", "", allowedRecord)
	}
	d := decoder{scanner: scanner{buf: value}}
	if err := d.record(); err != nil {
		return Beat{}, err
	}
	return d.canonical()
}

// decoder reads one beat.
type decoder struct {
	scanner
	beat  Beat
	given fieldSet // seen in the text
	wrong fieldSet // seen, but of a wrong type, so there is no value to look at
	problems
}

// record reads the whole text. An error means that it is no JSON object; other problems are collected.
func (d *decoder) record() error {
	if first := d.peek(); first != '{' {
		raw, err := d.skip(0)
		if err != nil || d.peek() != 0 {
			return d.broken(err)
		}
		return whole(NotObject, "is no object", shown(raw), allowedRecord)
	}
	if err := d.object(d.member); err != nil {
		return d.broken(err)
	}
	if d.space(); d.pos != len(d.buf) {
		return d.broken(nil)
	}
	return nil
}

func (d *decoder) broken(err error) error {
	if errors.Is(err, errSurrogate) {
		return whole(NotUTF8, fmt.Sprintf("is not UTF-8 text: %v before byte %d", err, d.pos), "", allowedRecord)
	}
	if d.pos >= len(d.buf) {
		return whole(NotJSON, fmt.Sprintf("is not JSON: it ends too early, after %d bytes", len(d.buf)), "", allowedRecord)
	}
	return whole(NotJSON, fmt.Sprintf("is not JSON from byte %d on", d.pos), quoted(string(d.buf[d.pos:min(len(d.buf), d.pos+20)])), allowedRecord)
}

// member reads the value of one field.
func (d *decoder) member(name []byte) error {
	f, ok := fieldOf(name)
	if !ok {
		shortName := cut(string(name), maxShown)
		raw, err := d.skip(1)
		if err == nil {
			d.unknown("", shortName, shown(raw), fieldNames[:])
		}
		return err
	}
	if d.given.has(f) {
		d.twice(fieldNames[f])
		_, err := d.skip(1)
		return err
	}
	d.given.put(f)
	return d.value(f)
}

func (d *decoder) value(f field) error {
	b := &d.beat
	switch f {
	case fService:
		return d.text(f, &b.Service)
	case fID:
		return d.text(f, &b.ID)
	case fIncarnation:
		return d.integer(f, fieldNames[f], &b.Incarnation)
	case fSeq:
		return d.integer(f, fieldNames[f], &b.Seq)
	case fSentAt:
		return d.timestamp()
	case fScheme:
		return d.text(f, &b.Scheme)
	case fIP:
		return d.text(f, &b.IP)
	case fPort:
		return d.number32(f, fieldNames[f], &b.Port)
	case fURL:
		return d.text(f, &b.URL)
	case fStatus:
		return d.text(f, (*string)(&b.Status))
	case fWeight:
		return d.number32(f, fieldNames[f], &b.Weight)
	case fMaxConns:
		return d.number32(f, fieldNames[f], &b.MaxConns)
	case fMaxFails:
		b.MaxFails = new(int)
		return d.number32(f, fieldNames[f], b.MaxFails)
	case fFailTimeout:
		return d.duration(f, &b.FailTimeout)
	case fSlowStart:
		return d.duration(f, &b.SlowStart)
	case fZone:
		return d.text(f, &b.Zone)
	case fVersion:
		return d.text(f, &b.Version)
	case fTags:
		return d.tags()
	case fMeta:
		return d.meta()
	case fLoad:
		return d.load()
	case fResources:
		return d.resources()
	case fInterval:
		return d.duration(f, &b.Interval)
	default:
		return d.duration(f, &b.StaleAfter)
	}
}
