package compare

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// seen is all that one request showed.
type seen struct {
	answer answer
	got    []received
}

// unlike are the fields that are not compared: they speak of one connection, of the moment, or of the program's name.
var unlike = []string{"Connection", "Keep-Alive", "Date", "Server", "Transfer-Encoding", "Etag"}

// random are values that differ by nature: only that they are there, and their form, is compared.
var random = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// differences compares two programs' ways with one request: name is what differs.
func differences(a, b seen) (out []string) {
	add := func(what string, x, y any) {
		if !reflect.DeepEqual(x, y) {
			out = append(out, fmt.Sprintf("%s: nginx %q, upstrand %q", what, fmt.Sprint(x), fmt.Sprint(y)))
		}
	}
	add("status", a.answer.Status, b.answer.Status)
	// What the wire refuses never reaches the configuration, and the engine's page of it is short.
	bothPages := isPage(a.answer.Body) && (isPage(b.answer.Body) || b.answer.Status == http.StatusBadRequest)
	if !bothPages {
		add("body", random.ReplaceAllString(a.answer.Body, "RANDOM"), random.ReplaceAllString(b.answer.Body, "RANDOM"))
	}
	add("stream came as it was sent", a.answer.Early || b.answer.Early, b.answer.Early)
	fields(a.answer.Fields, b.answer.Fields, func(name string, x, y []string) {
		if name == "Content-Type" && bothPages && b.answer.Status == http.StatusBadRequest {
			return
		}
		if name == "Content-Length" && (bothPages || len(x) == 0 || len(y) == 0) { // chunked or counted is each one's own choice
			return
		}
		add("field "+name, x, y)
	})
	add("requests to backends", len(a.got), len(b.got))
	for i := range min(len(a.got), len(b.got)) {
		x, y := a.got[i], b.got[i]
		add("backend", x.Backend, y.Backend)
		add("backend got", x.Method+" "+x.URI, y.Method+" "+y.URI)
		add("backend got Host", x.Host, y.Host)
		add("backend got body", x.Body, y.Body)
		fields(x.Fields, y.Fields, func(name string, x, y []string) { add("backend got "+name, x, y) })
	}
	return out
}

// isPage tells a built-in error page, whose words are each program's own.
func isPage(body string) bool {
	return strings.Contains(body, "<html>") && strings.Contains(body, "<h1>")
}

func fields(a, b http.Header, each func(name string, x, y []string)) {
	names := map[string]bool{}
	for n := range a {
		names[n] = true
	}
	for n := range b {
		names[n] = true
	}
	sorted := make([]string, 0, len(names))
	for n := range names {
		if !slices.Contains(unlike, n) {
			sorted = append(sorted, n)
		}
	}
	slices.Sort(sorted)
	for _, n := range sorted {
		x, y := slices.Clone(a[n]), slices.Clone(b[n])
		for i := range min(len(x), len(y)) {
			x[i], y[i] = alike(x[i], y[i])
		}
		each(n, x, y)
	}
}

// alike makes values equal that differ by nature: random identifiers, and dates a few seconds apart.
func alike(x, y string) (string, string) {
	dx, errX := http.ParseTime(x)
	dy, errY := http.ParseTime(y)
	if errX == nil && errY == nil && dx.Sub(dy).Abs() < 20*time.Second {
		return "about " + x, "about " + x
	}
	return random.ReplaceAllString(x, "RANDOM"), random.ReplaceAllString(y, "RANDOM")
}
