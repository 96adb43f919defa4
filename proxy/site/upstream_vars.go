package site

import (
	"slices"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

var proxyVariables = definitions{
	"proxy_host":                     maybe(func(r *request) string { return r.up.to.known().host }),
	"proxy_port":                     maybe(func(r *request) string { return r.up.to.known().port }),
	"proxy_add_x_forwarded_for":      appended(appendForwardedFor),
	"upstream_addr":                  tried(appendAddr),
	"upstream_status":                tried(appendStatus),
	"upstream_connect_time":          tried(func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Connect) }),
	"upstream_header_time":           tried(func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Header) }),
	"upstream_response_time":         tried(func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Response) }),
	"upstream_response_length":       tried(func(b []byte, t *forward.Try) []byte { return strconv.AppendInt(b, t.Length, 10) }),
	"upstream_bytes_received":        tried(func(b []byte, t *forward.Try) []byte { return strconv.AppendInt(b, t.In, 10) }),
	"upstream_bytes_sent":            tried(func(b []byte, t *forward.Try) []byte { return strconv.AppendInt(b, t.Out, 10) }),
	"upstream_last_server_name":      {Get: lastServerName},
	"upstream_cache_status":          never(),
	"upstream_cache_last_modified":   never(),
	"upstream_cache_etag":            never(),
	"upstream_queue_time":            {Append: queueTime},
	"proxy_internal_body_length":     {Refuse: "is nginx's own"},
	"proxy_internal_chunked":         {Refuse: "is nginx's own"},
	"proxy_internal_connection":      {Refuse: "is nginx's own"},
	"upstream_keepalive_connections": never(),
}

var proxyFamilies = families{
	"upstream_http_": family(func(r *request, rest string) (string, bool) {
		return fieldNamed(r.up.answer, rest, ", ")
	}),
	"upstream_trailer_": family(func(r *request, rest string) (string, bool) {
		return fieldNamed(r.up.trailer, rest, ", ")
	}),
	"upstream_cookie_": family(func(r *request, rest string) (string, bool) {
		return setCookieNamed(r.up.answer, rest)
	}),
}

// tried is a variable that lists something of each try: tries of one round are separated by ", ", rounds by " : ".
func tried(add func([]byte, *forward.Try) []byte) definition {
	return definition{Append: func(b []byte, r *request) ([]byte, bool) {
		trail := r.visible()
		if len(trail) == 0 {
			return b, false
		}
		return appendTries(b, trail, add), true
	}}
}

func appendTries(b []byte, trail forward.Trail, add func([]byte, *forward.Try) []byte) []byte {
	for i := range trail {
		switch {
		case trail[i].Upstream == "":
			b = append(b, " : "...)
			continue
		case i > 0 && trail[i-1].Upstream != "":
			b = append(b, ", "...)
		}
		b = add(b, &trail[i])
	}
	return b
}

// queueTime is how long the attempts waited for a peer; absent when none has.
func queueTime(b []byte, r *request) ([]byte, bool) {
	trail := r.visible()
	if !slices.ContainsFunc(trail, func(t forward.Try) bool { return t.Queue > 0 }) {
		return b, false
	}
	return appendTries(b, trail, func(b []byte, t *forward.Try) []byte { return appendTime(b, t.Queue) }), true
}

// appendAddr writes the peer's address, or the name of an upstream that had nobody to give.
func appendAddr(b []byte, t *forward.Try) []byte {
	if t.Peer == nil {
		return append(b, t.Upstream...)
	}
	return append(b, t.Peer.Addr()...)
}

func appendStatus(b []byte, t *forward.Try) []byte {
	if t.Status == 0 {
		return append(b, '-')
	}
	return strconv.AppendInt(b, int64(t.Status), 10)
}

// appendTime writes seconds with three digits behind the point.
func appendTime(b []byte, d time.Duration) []byte {
	if d < 0 {
		return append(b, '-')
	}
	ms := int64(d / time.Millisecond)
	b = append(strconv.AppendInt(b, ms/1000, 10), '.')
	ms %= 1000
	return append(b, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

func lastServerName(r *request) (string, bool) {
	if n := len(r.up.trail); n > 0 && r.up.trail[n-1].Peer != nil {
		return r.up.trail[n-1].Peer.ID(), true
	}
	return "", false
}

// appendForwardedFor writes the client's X-Forwarded-For with its address behind it.
func appendForwardedFor(b []byte, r *request) []byte {
	if have, ok := fieldNamed(r.in.Fields, "x_forwarded_for", ", "); ok {
		b = append(append(b, have...), ", "...)
	}
	return appendAddress(b, r.remote)
}

var answerVariables = definitions{
	"body_bytes_sent": number(func(r *request) int64 { return r.sent.bytes }),
	"bytes_sent":      number(func(r *request) int64 { return r.sent.bytes + r.sent.headSize() }),
	"request_completion": maybe(func(r *request) string {
		if r.sent.whole {
			return "OK"
		}
		return ""
	}),
	"gzip_ratio":          never(),
	"realip_remote_addr":  maybePlain(func(b []byte, r *request) []byte { return appendAddress(b, r.in.Remote) }),
	"realip_remote_port":  plain(func(b []byte, r *request) []byte { return appendPort(b, r.in.RemotePort) }),
	"connections_active":  always(func(r *request) string { return r.connections(func(c Connections) int64 { return c.Active }) }),
	"connections_reading": always(func(r *request) string { return r.connections(func(c Connections) int64 { return c.Reading }) }),
	"connections_writing": always(func(r *request) string { return r.connections(func(c Connections) int64 { return c.Writing }) }),
	"connections_waiting": always(func(r *request) string { return r.connections(func(c Connections) int64 { return c.Waiting }) }),
}

var answerFamilies = families{
	"sent_http_": family(func(r *request, rest string) (string, bool) {
		return fieldNamed(r.sent.list, rest, ", ")
	}),
	"sent_trailer_": family(func(r *request, rest string) (string, bool) {
		if !r.conf.way().trailers {
			return "", false
		}
		return fieldNamed(r.up.trailer, rest, ", ")
	}),
}
