package wire

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/upstrand/upstrand/proxy"
)

// Lane is a proxy's address with a backend behind it that nobody else asks, so that what comes there belongs to what was sent.
type Lane struct {
	Addr    string
	Backend *Backend
	TLS     *tls.Config // of clients; nil: the lane speaks in the clear
	close   func() error
}

// Dial connects to the proxy, with a deadline for all that follows.
func (l *Lane) Dial(limit time.Duration) (*Client, error) {
	if l.TLS != nil {
		return DialTLS(l.Addr, limit, l.TLS)
	}
	return Dial(l.Addr, limit)
}

// Close ends the lane.
func (l *Lane) Close() error {
	var err error
	if l.close != nil {
		err = l.close()
	}
	l.Backend.Close()
	return err
}

// LaneServer is the configuration of a lane, for nginx too. Each location is a way to forward.
func LaneServer(listen, backend string) string {
	return fmt.Sprintf(`
server {
  listen %[1]s;
  client_header_timeout 20s;
  client_body_timeout 20s;
  keepalive_timeout 20s;
  client_max_body_size 64k;
  proxy_connect_timeout 20s;
  proxy_read_timeout 20s;
  proxy_next_upstream off;
  proxy_http_version 1.1;
  proxy_set_header Host $http_host;
  proxy_set_header Connection "";
  location / { proxy_pass http://%[2]s; }
  location /host { proxy_set_header Host $host; proxy_set_header Connection ""; proxy_pass http://%[2]s; }
  location /upgrade {
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection upgrade;
    proxy_pass http://%[2]s;
  }
  location /stream { proxy_request_buffering off; proxy_pass http://%[2]s; }
  location /old { proxy_http_version 1.0; proxy_set_header Host $http_host; proxy_pass http://%[2]s; }
  location /own { return 200 own; }
}
`, listen, backend)
}

// FileLane is a lane of a proxy in this process that a file configures.
func FileLane() (*Lane, error) {
	return NewLane(func(b *Backend) (*Proxy, error) {
		return FromFile(func(listen string) string { return LaneServer(listen, b.Addr) })
	})
}

// NewLane puts a proxy that serve makes in front of a backend.
func NewLane(serve func(b *Backend) (*Proxy, error)) (*Lane, error) {
	b, err := NewBackend()
	if err != nil {
		return nil, err
	}
	p, err := serve(b)
	if err != nil {
		b.Close()
		return nil, err
	}
	return &Lane{Addr: p.Addr, Backend: b, close: p.Close}, nil
}

// PublishedLane is a lane of a proxy in this process that serves what was published, within the limits of LaneServer.
func PublishedLane() (*Lane, error) {
	return NewLane(func(b *Backend) (*Proxy, error) {
		return FromTopology(func(c *proxy.Config) {
			c.Engine.ClientHeader, c.Engine.ClientBody, c.Engine.ClientIdle = 20*time.Second, 20*time.Second, 20*time.Second
			c.Engine.ClientLine, c.Engine.ClientLines = 8<<10, 32<<10
			c.Peers.Connect, c.Peers.Read = 20*time.Second, 20*time.Second
		}, b.Addr)
	})
}
