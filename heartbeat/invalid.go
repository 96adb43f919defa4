package heartbeat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Reason says in one word why a record is not a beat. The set is closed, so it serves as a metric label.
type Reason string

// The reasons. The first group is about the record as a whole, the second about one field each.
const (
	Empty          Reason = "empty"           // no bytes at all
	TooLarge       Reason = "too_large"       // above MaxRecord
	NotUTF8        Reason = "not_utf8"        // bytes or escapes that are no UTF-8 text
	NotJSON        Reason = "not_json"        // a syntax error, or something after the end
	NotObject      Reason = "not_object"      // JSON, but no object
	KeyMismatch    Reason = "key_mismatch"    // the record key is not service/id
	DuplicateField Reason = "duplicate_field" // a field given twice
	UnknownField   Reason = "unknown_field"   // a field that this version does not know
	BadType        Reason = "bad_type"        // a string where a number belongs, null, …
	MissingField   Reason = "missing_field"   // a required field is absent

	BadService     Reason = "bad_service"
	BadID          Reason = "bad_id"
	BadIncarnation Reason = "bad_incarnation"
	BadSeq         Reason = "bad_seq"
	BadSentAt      Reason = "bad_sent_at"
	BadScheme      Reason = "bad_scheme"
	BadIP          Reason = "bad_ip"
	BadPort        Reason = "bad_port"
	BadURL         Reason = "bad_url"
	BadStatus      Reason = "bad_status"
	BadWeight      Reason = "bad_weight"
	BadMaxConns    Reason = "bad_max_conns"
	BadMaxFails    Reason = "bad_max_fails"
	BadFailTimeout Reason = "bad_fail_timeout"
	BadSlowStart   Reason = "bad_slow_start"
	BadZone        Reason = "bad_zone"
	BadVersion     Reason = "bad_version"
	BadTags        Reason = "bad_tags"
	BadMeta        Reason = "bad_meta"
	BadLoad        Reason = "bad_load"
	BadResources   Reason = "bad_resources"
	BadInterval    Reason = "bad_interval"
	BadStaleAfter  Reason = "bad_stale_after"
)

// Reasons lists all of them.
func Reasons() []Reason {
	return []Reason{
		Empty, TooLarge, NotUTF8, NotJSON, NotObject, KeyMismatch, DuplicateField, UnknownField, BadType, MissingField,
		BadService, BadID, BadIncarnation, BadSeq, BadSentAt, BadScheme, BadIP, BadPort, BadURL, BadStatus, BadWeight, BadMaxConns,
		BadMaxFails, BadFailTimeout, BadSlowStart, BadZone, BadVersion, BadTags, BadMeta, BadLoad, BadResources, BadInterval,
		BadStaleAfter,
	}
}

// Problem is one thing wrong with a beat.
type Problem struct {
	Field   string // as in JSON, such as load.rps; empty: the record as a whole
	Reason  Reason
	Message string // what is wrong, to be read after the field's name, such as "is required"
	Value   string // what was found, shortened; may be empty
	Allowed string // what would have been right, and nothing else
}

func (p Problem) String() string {
	s := p.Message
	if p.Value != "" {
		s += ", given " + p.Value
	}
	if p.Allowed != "" {
		s += " (allowed: " + p.Allowed + ")"
	}
	if p.Field != "" {
		s = p.Field + ": " + s
	}
	return s
}

// InvalidError says all that is wrong with a beat, up to maxProblems.
type InvalidError struct {
	Reason   Reason // of the first problem
	Problems []Problem
	Omitted  int // further problems, not listed
}

const maxProblems = 32

func (e *InvalidError) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "invalid beat (%s)", e.Reason)
	listed := false
	for i, p := range e.Problems {
		s.WriteString([]string{": ", "; "}[min(i, 1)])
		if p.Allowed == allowedFields {
			if listed {
				p.Allowed = "" // the list of all fields is long enough once
			}
			listed = true
		}
		s.WriteString(p.String())
	}
	if e.Omitted > 0 {
		fmt.Fprintf(&s, "; and %d more", e.Omitted)
	}
	return s.String()
}

// whole is the error of a record that is wrong as a whole.
func whole(reason Reason, message, value, allowed string) *InvalidError {
	return &InvalidError{Reason: reason, Problems: []Problem{{Reason: reason, Message: message, Value: value, Allowed: allowed}}}
}

func tooLarge(n int) *InvalidError {
	return whole(TooLarge, "is too large", fmt.Sprintf("%d bytes", n), fmt.Sprintf("at most %d bytes", MaxRecord))
}

// problems collects what is wrong. The zero value holds nothing and allocates nothing.
type problems struct {
	list    []Problem
	omitted int
}

func (p *problems) add(field string, reason Reason, message, value, allowed string) {
	if len(p.list) >= maxProblems {
		p.omitted++
		return
	}
	p.list = append(p.list, Problem{Field: field, Reason: reason, Message: message, Value: value, Allowed: allowed})
}

// err must return the interface: a nil *InvalidError in an error is not nil.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &InvalidError{Reason: p.list[0].Reason, Problems: p.list, Omitted: p.omitted}
}

const maxShown = 80

// quoted is s as a Go string literal, shortened.
func quoted(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	return strconv.Quote(cut(s, maxShown)) + "…"
}

// shown is raw JSON text, shortened.
func shown(raw []byte) string {
	if len(raw) <= maxShown {
		return string(raw)
	}
	return cut(string(raw), maxShown) + "…"
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
