package site

import (
	"strconv"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

var proxyVariables = definitions{
	"proxy_host":                     maybe(func(r *request) string { return r.up.to.host }),
	"proxy_port":                     maybe(func(r *request) string { return r.up.to.port }),
	"proxy_add_x_forwarded_for":      always(forwardedFor),
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
	"upstream_queue_time":            never(),
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
	return definition{Get: func(r *request) (string, bool) {
		trail := r.visible()
		if len(trail) == 0 {
			return "", false
		}
		var room [64]byte
		return string(appendTries(room[:0], trail, add)), true
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

// forwardedFor is the client's X-Forwarded-For with its address behind it.
func forwardedFor(r *request) string {
	have, ok := fieldNamed(r.in.Fields, "x_forwarded_for", ", ")
	if !ok {
		return addrText(r.remote)
	}
	return have + ", " + addrText(r.remote)
}

var answerVariables = definitions{
	"body_bytes_sent": always(func(r *request) string { return strconv.FormatInt(r.sent.bytes, 10) }),
	"bytes_sent":      always(func(r *request) string { return strconv.FormatInt(r.sent.bytes+r.sent.head, 10) }),
	"request_completion": maybe(func(r *request) string {
		if r.sent.whole {
			return "OK"
		}
		return ""
	}),
	"gzip_ratio":          never(),
	"realip_remote_addr":  maybe(func(r *request) string { return addrText(r.in.Remote) }),
	"realip_remote_port":  always(func(r *request) string { return portText(r.in.RemotePort) }),
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
		if !r.conf.proxy.trailers {
			return "", false
		}
		return fieldNamed(r.up.trailer, rest, ", ")
	}),
}
