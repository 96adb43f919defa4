package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/upstrand/upstrand/registry/wire"
)

// problem is an error answer. huma takes status, headers and media type from its methods.
type problem struct {
	wire.Problem
	headers http.Header
}

var (
	_ huma.StatusError       = (*problem)(nil)
	_ huma.HeadersError      = (*problem)(nil)
	_ huma.ContentTypeFilter = (*problem)(nil)
)

// newProblem makes an error answer of what went wrong as a whole and, optionally, one by one.
func newProblem(status int, detail string, errs ...wire.FieldError) *problem {
	return &problem{Problem: wire.Problem{
		Title: http.StatusText(status), Status: status, Detail: detail, Errors: errs,
	}}
}

// retryAfter says in how many seconds asking again makes sense.
func (p *problem) retryAfter(seconds int) *problem {
	return p.header("Retry-After", strconv.Itoa(seconds))
}

func (p *problem) header(name, value string) *problem {
	if p.headers == nil {
		p.headers = http.Header{}
	}
	p.headers.Set(name, value)
	return p
}

func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) GetHeaders() http.Header   { return p.headers }
func (p *problem) ContentType(string) string { return wire.ProblemType }

// write sends the problem where huma is not in between. An error of writing is the client's going away.
func (p *problem) write(w http.ResponseWriter) {
	for name, values := range p.headers {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", wire.ProblemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(&p.Problem)
}

// badRequest is the answer to parameters that can't be used; it counts them in its detail.
func badRequest(errs []wire.FieldError) *problem {
	detail := "a parameter can't be used"
	if len(errs) > 1 {
		detail = fmt.Sprintf("%d parameters can't be used", len(errs))
	}
	return newProblem(http.StatusBadRequest, detail, errs...)
}

func notFound(location, value, format string, args ...any) *problem {
	detail := fmt.Sprintf(format, args...)
	return newProblem(http.StatusNotFound, detail, wire.FieldError{Location: location, Message: "not found", Value: value})
}

const maxShown = 200

// shown is what was given, cut to what FieldError.Value promises and made printable.
func shown(value string) string {
	value = strings.ToValidUTF8(value, "\uFFFD")
	if len(value) <= maxShown {
		return value
	}
	n := maxShown
	for !utf8.RuneStart(value[n]) {
		n--
	}
	return value[:n] + "…"
}
