package nethttp

import (
	"net/http"
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
	return out
}

func addFields(h http.Header, fields []forward.Field) {
	for _, f := range fields {
		h.Add(string(f.Name), string(f.Value))
	}
}

// hideIdempotency keeps net/http from repeating a request because of these fields, which it knows by their canonical
// names only: whether to repeat is decided above. On the wire the case of a name means nothing.
func hideIdempotency(h http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, has := h[name]; has {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
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
