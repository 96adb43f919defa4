package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/syntax"
)

// FuzzAnswer: a head is read the same however it arrives, and what is taken for an answer here is taken for the same one by
// net/http.
func FuzzAnswer(f *testing.F) {
	for _, r := range rows() {
		f.Add([]byte(r.answer), byte(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, step byte) {
		h := newHead(nil)
		n, done, err := h.feed(data)
		pieces := newHead(nil)
		m, doneToo, errToo := feedInPieces(&pieces, data, int(step)+1)
		if done != doneToo || (err == nil) != (errToo == nil) || err == nil && (n != m || h.status != pieces.status || len(h.fields) != len(pieces.fields)) {
			t.Fatalf("whole %d %v %v, in pieces %d %v %v", n, done, err, m, doneToo, errToo)
		}
		if !done || err != nil {
			return
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
		if err != nil {
			t.Fatalf("net/http does not take it: %v", err)
		}
		compare(t, &h, resp, data[n:])
	})
}

func feedInPieces(h *head, data []byte, step int) (n int, done bool, err error) {
	for end := 0; end < len(data) && !done && err == nil; {
		end = min(end+step, len(data))
		var m int
		m, done, err = h.feed(data[n:end])
		n += m
	}
	return n, done, err
}

// compare looks at the final answer, since net/http's reader passes none over.
func compare(t *testing.T, h *head, resp *http.Response, rest []byte) {
	defer resp.Body.Close()
	if resp.StatusCode != h.status {
		t.Fatalf("status %d, net/http %d", h.status, resp.StatusCode)
	}
	for _, f := range h.fields {
		// net/http takes out what is about the message.
		if is(f.Name, "transfer-encoding") || is(f.Name, "trailer") || is(f.Name, "connection") {
			continue
		}
		if values := resp.Header.Values(string(f.Name)); !slices.Contains(values, string(f.Value)) {
			t.Fatalf("field %q: %q, net/http %q", f.Name, f.Value, values)
		}
	}
	how, _ := h.framing(false)
	if h.status < 200 || how == noBody {
		return
	}
	theirs, theirErr := io.ReadAll(resp.Body)
	var ours []byte
	whole := true
	switch how {
	case byLength:
		ours = rest[:min(int64(len(rest)), h.length)]
		whole = int64(len(rest)) >= h.length
	case untilClose:
		ours = rest
	case byChunks:
		d := syntax.NewChunks(1 << 20)
		ours = make([]byte, len(rest))
		n, _, err := d.Decode(ours, rest)
		ours, whole = ours[:n], err == nil && d.Done()
	}
	if theirErr != nil && strings.Contains(theirErr.Error(), "long trailer") { // theirs are smaller than what we take
		return
	}
	if whole && !padded(rest) && (theirErr != nil || !bytes.Equal(ours, theirs)) {
		t.Fatalf("body %q, net/http %q, %v", ours, theirs, theirErr)
	}
}

// padded tells that there may be white space between a chunk's size and its extensions, which RFC 9112 allows and
// net/http does not.
func padded(chunks []byte) bool {
	return bytes.Contains(chunks, []byte(" ;")) || bytes.Contains(chunks, []byte("\t;")) || bytes.Contains(chunks, []byte(" \t")) || bytes.Contains(chunks, []byte("\t "))
}

// FuzzChunks: a body is taken out of its chunks the same however it arrives, also in place, and as net/http does.
func FuzzChunks(f *testing.F) {
	for _, r := range rows() {
		if _, chunks, ok := strings.Cut(r.answer, "Transfer-Encoding: chunked\r\n\r\n"); ok {
			f.Add([]byte(chunks), byte(2))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, step byte) {
		one := syntax.NewChunks(1 << 20)
		whole := make([]byte, len(data))
		n, took, err := one.Decode(whole, data)
		whole = whole[:n]

		var pieces []byte
		many := syntax.NewChunks(1 << 20)
		at := 0
		var errToo error
		for at < len(data) && !many.Done() && errToo == nil {
			p := bytes.Clone(data[at:min(at+int(step)+1, len(data))])
			var w, r int
			w, r, errToo = many.Decode(p, p)
			pieces = append(pieces, p[:w]...)
			at += r
		}
		if !bytes.Equal(whole, pieces) || (err == nil) != (errToo == nil) || one.Done() != many.Done() || err == nil && at != took {
			t.Fatalf("whole %q %v, in pieces %q %v", whole, err, pieces, errToo)
		}
		if err != nil || !one.Done() || padded(data) {
			return
		}
		theirs, theirErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(data)))
		if theirErr != nil || !bytes.Equal(theirs, whole) {
			t.Fatalf("%q, net/http %q, %v", whole, theirs, theirErr)
		}
	})
}
