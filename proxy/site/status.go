package site

import (
	"context"
	"strconv"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// Connections are the seven counters of stub_status, of the whole process since its start.
type Connections struct {
	Active   int64 // connections of clients that are open
	Accepts  int64 // … that were taken
	Handled  int64 // … and served
	Requests int64
	Reading  int64 // connections on which a request's head is being read
	Writing  int64 // … on which a request is being served
	Waiting  int64 // … that are kept without a request
}

// Counter is an Env that can tell them. Of another one all are 0 but the request itself.
type Counter interface{ Connections() Connections }

func setStubStatus(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 0, 1) {
		l.settings().handler = (*request).stubStatus
	}
}

func (r *request) counts() Connections {
	if c, ok := r.env.(Counter); ok {
		return c.Connections()
	}
	return Connections{Active: 1, Accepts: 1, Handled: 1, Requests: 1, Writing: 1}
}

func (r *request) connections(of func(Connections) int64) string {
	return strconv.FormatInt(of(r.counts()), 10)
}

// stubStatus answers with the counters as tools that read nginx's expect them.
func (r *request) stubStatus(context.Context) outcome {
	switch string(r.method) {
	case "GET", "HEAD":
	default:
		return fail(405)
	}
	c := r.counts()
	var b []byte
	add := func(text string, numbers ...int64) {
		b = append(b, text...)
		for _, n := range numbers {
			b = append(strconv.AppendInt(b, n, 10), ' ')
		}
	}
	add("Active connections: ", c.Active)
	add("\nserver accepts handled requests\n ", c.Accepts, c.Handled, c.Requests)
	add("\nReading: ", c.Reading)
	add("Writing: ", c.Writing)
	add("Waiting: ", c.Waiting)
	b = append(b, '\n')
	return r.answer(200, []forward.Field{{Name: nameContentType, Value: []byte("text/plain")}}, b)
}
