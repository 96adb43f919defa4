package certs

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// shake is a handshake: what either side ends with.
func shake(t *testing.T, server, client *tls.Config) (atServer, atClient tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	return shakeTwice(t, server, client, 0)
}

// shakeTwice reads so many bytes behind the handshake, which lets tickets come in.
func shakeTwice(t *testing.T, server, client *tls.Config, n int) (atServer, atClient tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	a, b := pair(t)
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if serverErr = s.HandshakeContext(context.Background()); serverErr == nil && n > 0 {
			_, serverErr = s.Write(make([]byte, n))
		}
		if serverErr != nil {
			_ = a.Close()
		}
	}()
	if clientErr = c.HandshakeContext(context.Background()); clientErr == nil && n > 0 {
		_, clientErr = c.Read(make([]byte, n))
	}
	if clientErr != nil {
		_ = b.Close()
	}
	<-done
	atServer, atClient = s.ConnectionState(), c.ConnectionState()
	_ = a.Close()
	_ = b.Close()
	return atServer, atClient, serverErr, clientErr
}

// pair is the two ends of a connection. A pipe will not do: handshakes write at the same time from both.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if a, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// served is a Server of one certificate.
func served(t *testing.T, s *Store, set Settings, c *tls.Certificate) *Server {
	t.Helper()
	cert, key := certstest.Write(t, t.TempDir(), "a", c)
	set.Pairs = append(set.Pairs, Pair{cert, key})
	server, err := s.Server(set, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}
