package certs

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestBackends: whom we speak to, by what they show and what is asked of them.
func TestBackends(t *testing.T) {
	ca, stranger := certstest.New(t, "ca"), certstest.New(t, "stranger")
	sub := ca.Sub("sub")
	dir := t.TempDir()
	trusted := filepath.Join(dir, "ca.pem")
	certstest.Put(t, trusted, ca.PEM())
	verify := Peer{Verify: true, Trusted: trusted, Depth: 1}
	shallow := verify
	shallow.Depth = 0
	for name, tc := range map[string]struct {
		peer       Peer
		shown      *tls.Certificate
		name, said string
		want       string // of the error; empty: none
	}{
		"unverified":      {Peer{}, stranger.Leaf([]string{"b"}, certstest.Expired), "a", "", ""},
		"good":            {verify, ca.Leaf([]string{"a"}), "a", "", ""},
		"with a port":     {verify, ca.Leaf([]string{"a"}), "a:443", "a", ""},
		"address":         {verify, ca.Leaf([]string{"127.0.0.1"}), "127.0.0.1", "", ""},
		"IPv6":            {verify, ca.Leaf([]string{"::1"}), "[::1]", "", ""},
		"wrong name":      {verify, ca.Leaf([]string{"b"}), "a", "", "not a"},
		"wrong address":   {verify, ca.Leaf([]string{"127.0.0.1"}), "127.0.0.2", "", "127.0.0.2"},
		"no name":         {verify, ca.Leaf([]string{"a"}), "", "", "no name"},
		"expired":         {verify, ca.Leaf([]string{"a"}, certstest.Expired), "a", "", "expired"},
		"unknown":         {verify, stranger.Leaf([]string{"a"}), "a", "", "unknown authority"},
		"through another": {verify, sub.Leaf([]string{"a"}), "a", "", ""},
		"too far":         {shallow, sub.Leaf([]string{"a"}), "a", "", "more than 0 between"},
		"the system's":    {Peer{Verify: true}, ca.Leaf([]string{"a"}), "a", "", "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := new(Store).Client(tc.peer, false)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _, _, err = shake(t, &tls.Config{Certificates: []tls.Certificate{*tc.shown}}, c.Config(tc.name, tc.said))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// TestOwnCertificate is shown to a backend that asks, and is another one when its files change; a configuration stays the
// same, so that connections stay shared, and a session of before is not resumed as somebody else.
func TestOwnCertificate(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "me", ca.Leaf([]string{"one"}))
	trusted := filepath.Join(dir, "ca.pem")
	certstest.Put(t, trusted, ca.PEM())
	s := new(Store)
	c, err := s.Client(Peer{Own: Pair{cert, key}, Verify: true, Trusted: trusted, Depth: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := &tls.Config{Certificates: []tls.Certificate{*ca.Leaf([]string{"b"})}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()}
	seen := func() string {
		t.Helper()
		cs, _, err, cerr := shakeTwice(t, server, c.Config("b", "b"), 1)
		if err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		return fmt.Sprint(cs.PeerCertificates[0].DNSNames[0], cs.DidResume)
	}
	conf := c.Config("b", "b")
	got := []string{seen(), seen()}
	certstest.Write(t, dir, "me", ca.Leaf([]string{"two"}))
	s.Look(true)
	got = append(got, seen(), seen())
	certstest.Put(t, cert, []byte("broken"))
	s.Look(true)
	got = append(got, seen())
	if text := strings.Join(got, " "); text != "onefalse onetrue twofalse twotrue twotrue" {
		t.Error(text)
	}
	if conf != c.Config("b", "b") || conf == c.Config("c", "b") || conf == c.Config("b", "c") {
		t.Error("a configuration is that of its names")
	}
	none, err := s.Client(Peer{}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if _, _, err, _ := shakeTwice(t, server, none.Config("b", "b"), 0); err == nil {
		t.Error("a backend that needs a certificate took none")
	}
	for i := range 3 * mostNames {
		c.Config("b", fmt.Sprint(i))
	}
	if n := len(c.configs); n > mostNames {
		t.Errorf("%d are kept", n)
	}
}

func TestFreshSessions(t *testing.T) {
	ca := certstest.New(t, "ca")
	c, err := new(Store).Client(Peer{Fresh: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server := &tls.Config{Certificates: []tls.Certificate{*ca.Leaf([]string{"b"})}}
	for range 2 {
		if cs, _, err, _ := shakeTwice(t, server, c.Config("b", "b"), 1); err != nil || cs.DidResume {
			t.Errorf("resumed %v, %v", cs.DidResume, err)
		}
	}
}
