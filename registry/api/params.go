package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/upstrand/upstrand/registry/wire"
)

// checkParams holds every request against the parameters that its operation documents, so that the document is what
// is enforced, and says all that is wrong at once. It is stricter than huma's own check: a parameter nobody documents
// and one that is given twice are errors too, since a filter that is silently dropped shows the wrong rows.
func checkParams(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if errs := paramErrors(ctx.Operation(), r); len(errs) > 0 {
		badRequest(errs).write(w)
		return
	}
	next(ctx)
}

func paramErrors(op *huma.Operation, r *http.Request) []wire.FieldError {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return []wire.FieldError{{
			Location: "query", Message: "can't be parsed: " + err.Error(), Value: shown(r.URL.RawQuery),
			Allowed: "name=value pairs joined by &, other characters as %XX",
		}}
	}
	errs := unknownParams(op, query)
	for _, p := range op.Parameters {
		if p.In == "path" {
			errs = append(errs, check(p, r.PathValue(p.Name))...)
			continue
		}
		values, given := query[p.Name]
		if !given {
			continue
		}
		if len(values) > 1 {
			errs = append(errs, fieldError(p, strings.Join(values, " and "), "is given more than once"))
			continue
		}
		errs = append(errs, check(p, values[0])...)
	}
	return errs
}

func unknownParams(op *huma.Operation, query url.Values) []wire.FieldError {
	var known, unknown []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			known = append(known, p.Name)
		}
	}
	for name := range query {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	allowed := "no parameters here"
	if len(known) > 0 {
		allowed = strings.Join(known, ", ")
	}
	errs := make([]wire.FieldError, len(unknown))
	for i, name := range unknown {
		errs[i] = wire.FieldError{
			Location: "query." + shown(name), Message: "is not a parameter of " + op.Path,
			Value: shown(strings.Join(query[name], " and ")), Allowed: allowed,
		}
	}
	return errs
}

// check holds one value, or each entry of a comma-separated one, against the parameter's schema.
func check(p *huma.Param, value string) []wire.FieldError {
	s, entries := p.Schema, []string{value}
	if s.Type == huma.TypeArray {
		s, entries = s.Items, strings.Split(value, ",")
		if p.Schema.MaxItems != nil && len(entries) > *p.Schema.MaxItems {
			return []wire.FieldError{fieldError(p, value, fmt.Sprintf("has %d entries", len(entries)))}
		}
	}
	var errs []wire.FieldError
	for _, entry := range entries {
		if message := mismatch(s, entry); message != "" {
			errs = append(errs, fieldError(p, entry, message))
		}
	}
	return errs
}

// mismatch says why value does not fit the schema; empty: it does.
func mismatch(s *huma.Schema, value string) string {
	if value == "" && (s.MinLength == nil || *s.MinLength > 0) {
		return "is empty"
	}
	switch s.Type {
	case huma.TypeInteger:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "is not a whole number"
		}
		return outside(s, float64(n))
	case huma.TypeNumber:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(n) {
			return "is not a number"
		}
		return outside(s, n)
	case huma.TypeString:
		return badText(s, value)
	}
	return ""
}

func outside(s *huma.Schema, n float64) string {
	if s.Minimum != nil && n < *s.Minimum {
		return "is too small"
	}
	if s.Maximum != nil && n > *s.Maximum {
		return "is too large"
	}
	return ""
}

func badText(s *huma.Schema, value string) string {
	switch {
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "is not UTF-8 text"
	case s.MaxLength != nil && utf8.RuneCountInString(value) > *s.MaxLength:
		return "is too long"
	case len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return e == value }):
		return "is not known"
	case s.Pattern != "" && !compiled(s.Pattern).MatchString(value):
		return "has characters or a form that can't be"
	case s.Format == formatSince:
		if _, err := parseSince(value, time.Time{}); err != nil {
			return err.Error()
		}
	}
	return ""
}

var patterns sync.Map // of *regexp.Regexp by its text; as many as the parameters have

func compiled(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)
	return re
}

func fieldError(p *huma.Param, value, message string) wire.FieldError {
	return wire.FieldError{
		Location: p.In + "." + p.Name, Message: message, Value: shown(value), Allowed: allowed(p.Schema),
	}
}

// allowed says in words what the schema lets through.
func allowed(s *huma.Schema) string {
	switch {
	case s.Type == huma.TypeArray:
		entries := allowed(s.Items)
		if s.MaxItems != nil {
			return fmt.Sprintf("at most %d, separated by commas, each %s", *s.MaxItems, entries)
		}
		return entries
	case len(s.Enum) > 0:
		names := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			names[i] = fmt.Sprint(e)
		}
		return "one of " + strings.Join(names, ", ")
	case s.PatternDescription != "":
		return s.PatternDescription
	case s.Format == formatSince:
		return allowedSince
	case s.Type == huma.TypeInteger || s.Type == huma.TypeNumber:
		return numberRange(s)
	case s.MaxLength != nil:
		return fmt.Sprintf("text of up to %d characters", *s.MaxLength)
	}
	return s.Type
}

func numberRange(s *huma.Schema) string {
	kind := "a number"
	if s.Type == huma.TypeInteger {
		kind = "a whole number"
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s from %.0f to %.0f", kind, *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%s from %.0f", kind, *s.Minimum)
	}
	return kind
}

// formatSince marks parameters that are a time or a duration before now.
const formatSince = "time-or-ago"

const allowedSince = "a time that is past, such as 2026-11-29T10:00:00Z, or how long ago, such as 15m"

// clockSkew is how far a caller's clock may be ahead of ours before a time of now counts as one of the future.
const clockSkew = time.Minute

// parseSince reads a time, or a duration before now. A zero now takes any time.
func parseSince(value string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, value); err == nil {
		if !now.IsZero() && t.After(now.Add(clockSkew)) {
			return time.Time{}, errors.New("is in the future")
		}
		return t, nil
	}
	ago, err := time.ParseDuration(value)
	if err != nil || ago < 0 {
		return time.Time{}, errors.New("is neither a time nor how long ago")
	}
	return now.Add(-ago), nil
}
