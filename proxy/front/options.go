package front

import (
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/proxyproto"
)

// Options are what a Server works with.
type Options struct {
	Handler forward.Handler
	// TLS is for connections that come to an address of a door with TLS; it is asked for each connection. Nil, and a nil
	// answer: they are closed.
	TLS func(local netip.AddrPort) *tls.Config
	// HTTP2 takes over connections that speak HTTP/2; nil: nobody speaks it here.
	HTTP2 ConnServer
	Log   zerolog.Logger
	// Refused is told of connections that ended before any request by their own fault, which Stats counts; nil: only the log
	// is, at debug.
	Refused func(why Refusal, info *ConnInfo, err error)
}

// ConnServer serves connections in another protocol than HTTP/1.
type ConnServer interface {
	// ServeConn returns when the connection is done; it closes it. c is a *tls.Conn after its handshake, or a connection that
	// gives again what was read of it. No deadline is set on it. It must end soon after c was closed by somebody else.
	ServeConn(c net.Conn, info ConnInfo)
}

// ConnInfo is what is known of a client's connection.
type ConnInfo struct {
	Remote, Local netip.AddrPort
	Proxy         *proxyproto.Info // what a PROXY protocol header said; nil: there was none
	Number        uint64           // of the connection in this process, from 1
	TLS           *tls.ConnectionState
	Settings      Settings // of the door that it came in by, with defaults
}
