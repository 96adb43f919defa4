package site

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/forward"
)

// answer gives an answer that was made here. Without a Content-Type among the fields it has none.
func (r *request) answer(status int, fields []forward.Field, body []byte) outcome {
	s := &r.sent
	s.proxied = false
	if !bodiless(r.finalStatus(status)) {
		fields = append(fields, forward.Field{Name: nameContentLength, Value: strconv.AppendInt(nil, int64(len(body)), 10)})
	}
	if s.Head(status, fields, int64(len(body))) != nil {
		return outcome{}
	}
	if r.headOnly() {
		body = nil
	}
	_ = s.Finish(body, nil)
	return outcome{}
}

var (
	nameContentLength = []byte("Content-Length")
	nameServer        = []byte("Server")
	nameDate          = []byte("Date")
	nameConnection    = []byte("Connection")
	valueServer       = []byte("upstrand")
	valueClose        = []byte("close")
	valueZero         = []byte("0")
	valueKeepAlive    = []byte("keep-alive")
)

// headOnly tells whether the client wants no body, or gets none with the status at hand.
func (r *request) headOnly() bool { return r.head || bodiless(r.status) }

func bodiless(status int) bool { return status == 204 || status == 304 }

// closesAfter are the statuses after which nginx keeps no connection: what the client sends next can't be trusted, or
// something is wrong here.
func closesAfter(status int) bool {
	switch status {
	case 400, 413, 414, 500, 501, certs.StatusBadCertificate, certs.StatusNoCertificate, statusPlain:
		return true
	}
	return false
}

// connection says what becomes of the client's connection.
func (r *request) connection(list *fieldList, length int64) {
	c := &r.conf.client
	keep := c.limits.Keepalive != NoKeepalive && c.limits.Requests != 0 && !r.last
	switch r.wished() {
	case wishClose:
		keep = false
	case wishWhole:
		keep = keep && (length >= 0 || r.headOnly())
	}
	value := valueKeepAlive
	if !keep {
		value = valueClose
	}
	list.put(nameConnection, value)
	if keep && c.keepaliveHeader != "" {
		list.add("Keep-Alive", bytesOf(c.keepaliveHeader))
	}
}

// wish is what a client says of its connection.
type wish uint8

const (
	wishUnknown wish = iota // it was not looked yet
	wishKeep
	wishWhole // keep it, if the end of the answer can be seen without
	wishClose
)

// wished is the client's wish. A request that waits for a backend asks before: the fields are at hand then.
func (r *request) wished() wish {
	if r.wish == wishUnknown {
		r.wish = wishOf(r.in)
	}
	return r.wish
}

func wishOf(in *forward.Request) wish {
	ask := fieldList(in.Fields).get("Connection")
	switch {
	case in.Proto == "HTTP/1.0" && hasWord(ask, "keep-alive"):
		return wishWhole
	case in.Proto == "HTTP/1.0", len(ask) > 0 && hasWord(ask, "close"):
		return wishClose
	}
	return wishKeep
}

// hasWord looks for a word in a comma-separated list, without regard to case.
func hasWord(list []byte, word string) bool {
	for len(list) > 0 {
		item := list
		for i, c := range list {
			if c == ',' {
				item = list[:i]
				break
			}
		}
		list = list[min(len(item)+1, len(list)):]
		if sameName(trimSpaces(item), word) {
			return true
		}
	}
	return false
}

func trimSpaces(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// dated is the text of a second, shared by all requests in it.
type dated struct {
	second int64
	text   []byte
}

var today atomic.Pointer[dated]

// dateOf is the Date field of a moment in Unix nanoseconds.
func dateOf(now int64) []byte {
	second := now / int64(time.Second)
	if d := today.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dated{second, []byte(time.Unix(second, 0).UTC().Format(httpDate))}
	today.Store(d)
	return d.text
}

func secondsText(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
