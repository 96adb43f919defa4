package site

import (
	"net/netip"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/forward"
)

// clientSettings is what the wire to clients is told, and which of their fields count.
type clientSettings struct {
	limits          ClientLimits
	keepaliveHeader string // seconds of a Keep-Alive field; empty: none
	keepInvalid     bool   // ignore_invalid_headers off
	underscores     bool
}

// ClientLimits are the times and sizes that a configuration sets for clients. 0 means nginx's default.
type ClientLimits struct {
	Header    time.Duration // client_header_timeout: for the whole head of a request
	Body      time.Duration // client_body_timeout: between two reads of a body
	Send      time.Duration // send_timeout: between two writes
	Keepalive time.Duration // keepalive_timeout: unused between two requests; NoKeepalive: not kept
	Age       time.Duration // keepalive_time: a connection older than that takes no other request
	Requests  int           // keepalive_requests on one connection
	Line      int           // large_client_header_buffers SIZE: bytes of one line of a request's head
	Lines     int           // … NUMBER × SIZE: bytes of the whole head
	Streams   int           // http2_max_concurrent_streams on one connection
}

// NoKeepalive as a Keepalive closes connections after each request.
const NoKeepalive = time.Duration(-1)

func (c *clientSettings) defaults() {
	c.limits = ClientLimits{Header: time.Minute, Body: time.Minute, Send: time.Minute, Keepalive: 75 * time.Second,
		Age: time.Hour, Requests: 1000, Line: 8 << 10, Lines: 32 << 10, Streams: 128}
}

var clientSetters = map[string]setter{
	"client_header_timeout":       times(func(s *settings) *time.Duration { return &s.client.limits.Header }),
	"client_body_timeout":         times(func(s *settings) *time.Duration { return &s.client.limits.Body }),
	"send_timeout":                times(func(s *settings) *time.Duration { return &s.client.limits.Send }),
	"client_header_buffer_size":   setHeaderBuffer,
	"large_client_header_buffers": setHeaderBuffers,
	"keepalive_timeout":           setKeepaliveTimeout,
	"keepalive_requests":          setKeepaliveRequests,
	"http2_max_concurrent_streams": func(l *level, n *topology.Node) {
		if v, ok := l.number(n, 1); ok {
			l.settings().client.limits.Streams = v
		}
	},
	"keepalive_time":         times(func(s *settings) *time.Duration { return &s.client.limits.Age }),
	"underscores_in_headers": onOff(func(s *settings) *bool { return &s.client.underscores }),
	"ignore_invalid_headers": func(l *level, n *topology.Node) {
		on := true
		if l.once(n) {
			l.flag(n, &on)
			l.settings().client.keepInvalid = !on
		}
	},
}

// Client gives the limits for connections that come to an address: those of its default server, which nginx, too, uses
// before it knows the host. Locations can't have their own.
func (s *Site) Client(local netip.AddrPort) ClientLimits {
	return s.addressOf(local).otherwise.set.client.limits
}

// setHeaderBuffer checks the size of the buffer that most heads fit into; larger ones go into the large ones.
func setHeaderBuffer(l *level, n *topology.Node) {
	var size int64
	l.size(n, &size)
}

func setHeaderBuffers(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 2, 2) {
		return
	}
	count, err := topology.ParseNumber(n.Args[0], 1)
	size, serr := topology.ParseSize(n.Args[1])
	if err != nil || serr != nil || size == 0 {
		l.problem(n, quote(n.Args[0]+" "+n.Args[1]), "NUMBER SIZE, such as 4 8k")
		return
	}
	c := &l.settings().client.limits
	c.Line, c.Lines = int(size), count*int(size)
}

// setKeepaliveTimeout reads how long a client's connection is kept; the second time is told to the client.
func setKeepaliveTimeout(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 2) {
		return
	}
	c := &l.settings().client
	for i, arg := range n.Args {
		d, err := topology.ParseTime(arg)
		switch {
		case err != nil:
			l.problem(n, err.Error(), "a time such as 75s, or 0 to keep no connection")
			return
		case i == 1:
			c.keepaliveHeader = "timeout=" + secondsText(d)
		case d == 0:
			c.limits.Keepalive = NoKeepalive
		default:
			c.limits.Keepalive = d
		}
	}
}

func setKeepaliveRequests(l *level, n *topology.Node) {
	if v, ok := l.number(n, 0); ok {
		l.settings().client.limits.Requests = v
	}
}

// cleanFields takes out of the request what a server does not look at: fields whose names hold other characters than
// letters, digits and hyphens, unless the configuration allows them. The client's own list stays as it is.
func cleanFields(c *clientSettings, fields []forward.Field) []forward.Field {
	if c.keepInvalid {
		return fields
	}
	for i := range fields {
		if validName(fields[i].Name, c.underscores) {
			continue
		}
		kept := append(make([]forward.Field, 0, len(fields)), fields[:i]...)
		for _, f := range fields[i+1:] {
			if validName(f.Name, c.underscores) {
				kept = append(kept, f)
			}
		}
		return kept
	}
	return fields
}

func validName(name []byte, underscores bool) bool {
	for _, c := range name {
		if !nameBytes[c] && (c != '_' || !underscores) {
			return false
		}
	}
	return len(name) > 0
}

// nameBytes are those that nginx takes in the name of a field.
var nameBytes = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-'
	}
	return set
}()
