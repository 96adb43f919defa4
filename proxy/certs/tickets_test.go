package certs

import (
	"crypto/rand"
	"crypto/tls"
	"path/filepath"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// visitor is a client that keeps its sessions.
func visitor(ca *certstest.Authority, version uint16, own *tls.Certificate) *tls.Config {
	c := &tls.Config{ServerName: "a.example", RootCAs: ca.Pool(), ClientSessionCache: tls.NewLRUClientSessionCache(4), MaxVersion: version}
	if own != nil {
		c.Certificates = []tls.Certificate{*own}
	}
	return c
}

// resumes tells whether a session that a client made at one server is resumed at another.
func resumes(t *testing.T, client *tls.Config, first, second *Server) bool {
	t.Helper()
	for i, s := range []*Server{first, second} {
		cs, _, err, cerr := shakeTwice(t, s.Config(false), client, 1)
		if err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		if i == 0 && cs.DidResume {
			t.Fatal("nothing was there to resume")
		}
		if i == 1 {
			return cs.DidResume
		}
	}
	return false
}

func TestResumption(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"a.example"}))
	authority := filepath.Join(dir, "ca.pem")
	certstest.Put(t, authority, ca.PEM())
	for _, name := range []string{"k1", "k2"} {
		text := make([]byte, 80)
		_, _ = rand.Read(text)
		certstest.Put(t, filepath.Join(dir, name), text)
	}
	k1, k2 := filepath.Join(dir, "k1"), filepath.Join(dir, "k2")
	one, another := new(Store), new(Store)
	with := func(s *Store, change func(*Settings)) *Server {
		set := Settings{Pairs: []Pair{{cert, key}}}
		if change != nil {
			change(&set)
		}
		server, err := s.Server(set, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return server
	}
	mine := ca.Leaf([]string{"me"})
	asks := func(s *Settings) { s.Verify, s.CA = Optional, authority }
	for name, tc := range map[string]struct {
		first, second *Server
		own           *tls.Certificate
		want          bool
	}{
		"the same":           {with(one, nil), with(one, nil), nil, true},
		"other limits":       {with(one, nil), with(one, func(s *Settings) { s.Max = tls.VersionTLS13 }), nil, true},
		"with a certificate": {with(one, asks), with(one, asks), mine, true},
		"off":                {with(one, func(s *Settings) { s.NoTickets = true }), with(one, func(s *Settings) { s.NoTickets = true }), nil, false},
		"another process":    {with(one, nil), with(another, nil), nil, false},
		"with a key file":    {with(one, func(s *Settings) { s.TicketKeys = []string{k1} }), with(another, func(s *Settings) { s.TicketKeys = []string{k2, k1} }), nil, true},
		"another key file":   {with(one, func(s *Settings) { s.TicketKeys = []string{k1} }), with(another, func(s *Settings) { s.TicketKeys = []string{k2} }), nil, false},
		"made without being asked for a certificate": {with(one, nil), with(one, asks), mine, false},
		"made under other authorities":               {with(one, func(s *Settings) { asks(s); s.Trusted = authority }), with(one, asks), mine, false},
		"too old":                                    {with(one, func(s *Settings) { s.TicketLife = time.Nanosecond }), with(one, func(s *Settings) { s.TicketLife = time.Nanosecond }), nil, false},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(name+" "+VersionName(version), func(t *testing.T) {
				if got := resumes(t, visitor(ca, version, tc.own), tc.first, tc.second); got != tc.want {
					t.Errorf("resumed: %v, want %v", got, tc.want)
				}
			})
		}
	}
}

// TestResumedClientIsKnown: the certificate of a client comes back with its session, and is judged as ever.
func TestResumedClientIsKnown(t *testing.T) {
	ca := certstest.New(t, "ca")
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certstest.Put(t, authority, ca.PEM())
	s := served(t, new(Store), Settings{Verify: On, CA: authority, Depth: 1}, ca.Leaf([]string{"a.example"}))
	mine := ca.Leaf([]string{"me"})
	client := visitor(ca, 0, mine)
	for i := range 2 {
		cs, _, err, _ := shakeTwice(t, s.Config(false), client, 1)
		if err != nil || cs.DidResume != (i > 0) {
			t.Fatalf("%d: resumed %v, %v", i, cs.DidResume, err)
		}
		if v := s.Judge(&cs); v.String() != "SUCCESS" || s.Refuses(v) != 0 {
			t.Errorf("%d: %v", i, v)
		}
	}
}
