package certs

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestChoice: of several certificates a client gets one that it can use, with its name if there is one, and ECDSA first.
func TestChoice(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	set := Settings{}
	for name, c := range map[string]*tls.Certificate{
		"1-rsa": ca.Leaf([]string{"a.example"}, certstest.RSA(t)), "2-ec": ca.Leaf([]string{"a.example"}), "3-other": ca.Leaf([]string{"b.example"}),
	} {
		cert, key := certstest.Write(t, dir, name, c)
		set.Pairs = append(set.Pairs, Pair{cert, key})
	}
	s, err := new(Store).Server(set, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	onlyRSA := []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	for name, tc := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"both":             {&tls.Config{ServerName: "a.example"}, "ecdsa a.example"},
		"RSA alone":        {&tls.Config{ServerName: "a.example", MaxVersion: tls.VersionTLS12, CipherSuites: onlyRSA}, "rsa a.example"},
		"another":          {&tls.Config{ServerName: "b.example"}, "ecdsa b.example"},
		"another, RSA":     {&tls.Config{ServerName: "b.example", MaxVersion: tls.VersionTLS12, CipherSuites: onlyRSA}, "rsa a.example"},
		"an unknown name":  {&tls.Config{ServerName: "c.example", MaxVersion: tls.VersionTLS12, CipherSuites: onlyRSA}, "rsa a.example"},
		"no name, TLS 1.3": {&tls.Config{MinVersion: tls.VersionTLS13}, "ecdsa "},
	} {
		t.Run(name, func(t *testing.T) {
			tc.client.InsecureSkipVerify = true
			_, got, _, err := shake(t, s.Config(false), tc.client)
			if err != nil {
				t.Fatal(err)
			}
			kind := map[bool]string{true: "rsa ", false: "ecdsa "}[isRSA(got)]
			if text := kind + got.PeerCertificates[0].DNSNames[0]; !strings.HasPrefix(text, tc.want) {
				t.Errorf("%s, want %s", text, tc.want)
			}
		})
	}
}

func isRSA(cs tls.ConnectionState) bool {
	switch cs.PeerCertificates[0].PublicKey.(type) {
	case *rsa.PublicKey:
		return true
	case *ecdsa.PublicKey:
	}
	return false
}

func TestProtocolsOfAHandshake(t *testing.T) {
	ca := certstest.New(t, "ca")
	s := served(t, new(Store), Settings{}, ca.Leaf([]string{"a.example"}))
	for name, tc := range map[string]struct {
		http2 bool
		offer []string
		want  string
		fails bool
	}{
		"h2": {true, []string{"h2", "http/1.1"}, "h2", false}, "h2 off": {false, []string{"h2", "http/1.1"}, "http/1.1", false},
		"none": {true, nil, "", false}, "old": {true, []string{"http/1.0"}, "http/1.0", false}, "unknown": {true, []string{"spdy/3"}, "", true},
		"h2 alone, off": {false, []string{"h2"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _, err := shake(t, s.Config(tc.http2), &tls.Config{ServerName: "a.example", RootCAs: ca.Pool(), NextProtos: tc.offer})
			if (err != nil) != tc.fails || err == nil && got.NegotiatedProtocol != tc.want {
				t.Errorf("%q, %v", got.NegotiatedProtocol, err)
			}
		})
	}
}

// TestReject: the alert is the one that says that there is no such name.
func TestReject(t *testing.T) {
	s, err := new(Store).Server(Settings{Reject: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		_, _, _, err = shake(t, s.Config(true), &tls.Config{ServerName: "a.example", MaxVersion: version})
		if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%v", err)
		}
	}
}

// TestLimitsOfTLS: what a list of versions, ciphers or curves leaves out is not spoken.
func TestLimitsOfTLS(t *testing.T) {
	ca := certstest.New(t, "ca")
	leaf := ca.Leaf([]string{"a.example"})
	suites, _, err := Suites("ECDHE-ECDSA-AES256-GCM-SHA384")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		set    Settings
		client *tls.Config
		want   string // version and suite; empty: none
	}{
		"newest":       {Settings{}, &tls.Config{}, "TLSv1.3"},
		"too old":      {Settings{}, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, ""},
		"most":         {Settings{Max: tls.VersionTLS12}, &tls.Config{}, "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256"},
		"least":        {Settings{Min: tls.VersionTLS13}, &tls.Config{MaxVersion: tls.VersionTLS12}, ""},
		"suite":        {Settings{Max: tls.VersionTLS12, Suites: suites}, &tls.Config{}, "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384"},
		"curve":        {Settings{Curves: []tls.CurveID{tls.CurveP384}}, &tls.Config{}, "TLSv1.3"},
		"no such":      {Settings{Curves: []tls.CurveID{tls.CurveP384}}, &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}}, ""},
		"client's own": {Settings{}, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: suites}, "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384"},
	} {
		t.Run(name, func(t *testing.T) {
			s := served(t, new(Store), tc.set, leaf)
			tc.client.ServerName, tc.client.RootCAs = "a.example", ca.Pool()
			got, _, _, err := shake(t, s.Config(true), tc.client)
			text := VersionName(got.Version) + " " + SuiteName(got.CipherSuite)
			if (err == nil) != (tc.want != "") || err == nil && !strings.HasPrefix(text, tc.want) {
				t.Errorf("%s, %v; want %q", text, err, tc.want)
			}
			if err == nil && len(tc.set.Curves) > 0 && CurveName(got.CurveID) != "secp384r1" {
				t.Errorf("curve %s", CurveName(got.CurveID))
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	s := new(Store)
	if !s.Expiry().IsZero() {
		t.Error("there is none")
	}
	leaf := certstest.New(t, "ca").Leaf([]string{"a.example"}, certstest.Expired)
	served(t, s, Settings{}, certstest.New(t, "ca").Leaf([]string{"a.example"}))
	server := served(t, s, Settings{}, leaf)
	if !s.Expiry().Equal(leaf.Leaf.NotAfter) || !server.Expires().Equal(leaf.Leaf.NotAfter) {
		t.Errorf("%v, want %v", s.Expiry(), leaf.Leaf.NotAfter)
	}
}
