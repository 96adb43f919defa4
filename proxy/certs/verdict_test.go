package certs

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestVerdicts: who may come in, by what is asked and what is shown. The reasons are OpenSSL's.
func TestVerdicts(t *testing.T) {
	ca, stranger := certstest.New(t, "ca"), certstest.New(t, "stranger")
	sub := ca.Sub("sub")
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certstest.Put(t, authority, ca.PEM())
	server := ca.Leaf([]string{"a.example"})
	serverOnly := ca.Leaf([]string{"me"}, func(o *certstest.Order) { o.Cert.ExtKeyUsage = o.Cert.ExtKeyUsage[:1] })
	shortOfChain := sub.Leaf([]string{"me"})
	shortOfChain.Certificate = shortOfChain.Certificate[:1]
	all := func(on, optional, noCA int) map[Verify]int {
		return map[Verify]int{On: on, Optional: optional, OptionalNoCA: noCA, Off: 0}
	}
	for name, tc := range map[string]struct {
		own   *tls.Certificate
		depth int
		want  string
		codes map[Verify]int
	}{
		"none":               {nil, 1, "NONE", all(496, 0, 0)},
		"good":               {ca.Leaf([]string{"me"}), 1, "SUCCESS", all(0, 0, 0)},
		"through another":    {sub.Leaf([]string{"me"}), 1, "SUCCESS", all(0, 0, 0)},
		"too far":            {sub.Leaf([]string{"me"}), 0, "FAILED:certificate chain too long", all(495, 495, 495)},
		"chain is missing":   {shortOfChain, 1, "FAILED:unable to verify the first certificate", all(495, 495, 0)},
		"a stranger's":       {stranger.Leaf([]string{"me"}), 1, "FAILED:unable to verify the first certificate", all(495, 495, 0)},
		"its own":            {&tls.Certificate{Certificate: [][]byte{stranger.Cert.Raw}, PrivateKey: stranger.Key()}, 1, "FAILED:self-signed certificate", all(495, 495, 0)},
		"expired":            {ca.Leaf([]string{"me"}, certstest.Expired), 1, "FAILED:certificate has expired", all(495, 495, 495)},
		"not yet":            {ca.Leaf([]string{"me"}, certstest.Early), 1, "FAILED:certificate is not yet valid", all(495, 495, 495)},
		"for something else": {serverOnly, 1, "FAILED:unsuitable certificate purpose", all(495, 495, 495)},
	} {
		for verify, code := range tc.codes {
			t.Run(name, func(t *testing.T) {
				s := served(t, new(Store), Settings{Verify: verify, CA: authority, Depth: tc.depth}, server)
				client := &tls.Config{ServerName: "a.example", RootCAs: ca.Pool()}
				if tc.own != nil { // whatever the server would like
					client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return tc.own, nil }
				}
				cs, _, err, _ := shake(t, s.Config(true), client)
				if err != nil {
					t.Fatal(err)
				}
				want := tc.want
				if verify == Off {
					want = "NONE"
				}
				v := s.Judge(&cs)
				if v.String() != want || s.Refuses(v) != code {
					t.Errorf("%d: %s and %d, want %s and %d", verify, v, s.Refuses(v), want, code)
				}
				if again := s.Judge(&cs); again != v {
					t.Errorf("then %v", again)
				}
			})
		}
	}
}

// TestToldAuthorities: clients are told of those that ssl_client_certificate names alone, and others may sign all the same.
func TestToldAuthorities(t *testing.T) {
	ca, other := certstest.New(t, "told"), certstest.New(t, "trusted")
	dir := t.TempDir()
	told, trusted := filepath.Join(dir, "told"), filepath.Join(dir, "trusted")
	certstest.Put(t, told, ca.PEM())
	certstest.Put(t, trusted, other.PEM())
	s := served(t, new(Store), Settings{Verify: On, CA: told, Trusted: trusted}, ca.Leaf([]string{"a.example"}))
	mine := other.Leaf([]string{"me"})
	var asked [][]byte
	cs, _, err, _ := shake(t, s.Config(true), &tls.Config{ServerName: "a.example", RootCAs: ca.Pool(),
		GetClientCertificate: func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = i.AcceptableCAs
			return mine, nil
		}})
	if err != nil || len(asked) != 1 || string(asked[0]) != string(ca.Cert.RawSubject) {
		t.Errorf("told of %d, %v", len(asked), err)
	}
	if v := s.Judge(&cs); v.String() != "SUCCESS" {
		t.Errorf("%v", v)
	}
}

// TestVerdictsAreBounded: connections that are gone leave theirs, and there is an end to it.
func TestVerdictsAreBounded(t *testing.T) {
	ca := certstest.New(t, "ca")
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certstest.Put(t, authority, ca.PEM())
	s := served(t, new(Store), Settings{Verify: On, CA: authority}, ca.Leaf([]string{"a.example"}))
	leaf := ca.Leaf([]string{"me"}).Leaf
	v := &s.now.Load().judged
	for range mostVerdicts + 10 {
		c := *leaf
		s.Judge(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{&c}})
	}
	if n := len(v.made); n == 0 || n > mostVerdicts {
		t.Errorf("%d are kept", n)
	}
}

// TestVerdictsKeepNoCertificate: a verdict is found again as long as the connection is there, and holds nothing of it then.
func TestVerdictsKeepNoCertificate(t *testing.T) {
	ca := certstest.New(t, "ca")
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certstest.Put(t, authority, ca.PEM())
	s := served(t, new(Store), Settings{Verify: On, CA: authority}, ca.Leaf([]string{"a.example"}))
	shown := ca.Leaf([]string{"me"}).Leaf
	cs := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}
	s.Judge(cs)
	key := weak.Make(shown)
	runtime.GC()
	if v, ok := s.now.Load().judged.find(key, time.Now()); !ok || v.String() != "SUCCESS" {
		t.Errorf("%v, found %v", v, ok)
	}
	if _, ok := s.now.Load().judged.find(key, time.Now().Add(rejudged)); ok {
		t.Error("it holds for ever")
	}
	runtime.KeepAlive(cs)
	runtime.GC()
	if key.Value() != nil {
		t.Error("the certificate of a connection that is gone is kept")
	}
}
