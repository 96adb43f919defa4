package wire

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Client is a raw connection to a proxy, or one within TLS.
type Client struct {
	net.Conn
	In  *bufio.Reader
	raw *net.TCPConn
}

// Dial connects, with a deadline for all that follows.
func Dial(addr string, limit time.Duration) (*Client, error) {
	return dial(addr, limit, func(raw *net.TCPConn) net.Conn { return raw })
}

// DialTLS is Dial over TLS.
func DialTLS(addr string, limit time.Duration, config *tls.Config) (*Client, error) {
	return dial(addr, limit, func(raw *net.TCPConn) net.Conn { return tls.Client(raw, config) })
}

func dial(addr string, limit time.Duration, over func(*net.TCPConn) net.Conn) (*Client, error) {
	c, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return nil, err
	}
	raw := c.(*net.TCPConn)
	conn := over(raw)
	_ = conn.SetDeadline(time.Now().Add(limit))
	return &Client{conn, bufio.NewReader(conn), raw}, nil
}

// CloseWrite ends the client's side.
func (c *Client) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// SetLinger is net.TCPConn's.
func (c *Client) SetLinger(seconds int) error { return c.raw.SetLinger(seconds) }

// Ended waits until the other side closes, and gives what came before that.
func (c *Client) Ended() (rest []byte, err error) {
	rest, err = io.ReadAll(c.In)
	if errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	return rest, err
}

// Quiet tells whether nothing comes for a while, and the connection stays open.
func (c *Client) Quiet(while time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(while))
	_, err := c.In.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}
