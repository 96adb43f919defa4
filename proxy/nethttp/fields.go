package nethttp

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
)

func fieldsOf(h http.Header) []forward.Field {
	if len(h) == 0 {
		return nil
	}
	out := make([]forward.Field, 0, len(h)+4)
	for name, values := range h {
		for _, v := range values {
			out = append(out, forward.Field{Name: []byte(name), Value: []byte(v)})
		}
	}
	// The client's order is lost; this one is at least always the same.
	slices.SortStableFunc(out, func(a, b forward.Field) int { return bytes.Compare(a.Name, b.Name) })
	return out
}

func addFields(h http.Header, fields []forward.Field) {
	for _, f := range fields {
		h.Add(string(f.Name), string(f.Value))
	}
}

// announced is the Trailer field for the names that net/http took out of the head.
func announced(trailer http.Header) []forward.Field {
	if len(trailer) == 0 {
		return nil
	}
	names := make([]string, 0, len(trailer))
	for name := range trailer {
		names = append(names, name)
	}
	return []forward.Field{{Name: []byte("Trailer"), Value: []byte(strings.Join(names, ", "))}}
}
