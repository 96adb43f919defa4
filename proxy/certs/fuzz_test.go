package certs

import (
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// FuzzLists: lists of ciphers and curves give what is spoken, each once, or an error, and never both.
func FuzzLists(f *testing.F) {
	for _, s := range []string{"HIGH:!aNULL", "EECDH+AESGCM:-ECDSA", "X25519:prime256v1", "auto", "", "+!-", "kRSA+", "ALL:@SECLEVEL=0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ids, _, err := Suites(s)
		if (err == nil) != (len(ids) > 0) {
			t.Errorf("%v, %v", ids, err)
		}
		for i, id := range ids {
			if slices.Contains(ids[:i], id) || !slices.ContainsFunc(suites, func(s suite) bool { return s.id == id }) {
				t.Errorf("%x in %x", id, ids)
			}
		}
		if curves, _, err := Curves(s); err != nil && curves != nil {
			t.Errorf("%v, %v", curves, err)
		}
	})
}

// FuzzFiles: whatever stands in a file, reading it ends with a certificate or with an error of one line.
func FuzzFiles(f *testing.F) {
	ca := certstest.New(f, "ca")
	cert, key := certstest.Texts(f, ca.Leaf([]string{"a"}))
	f.Add(cert, key)
	f.Add(key, cert)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN EC PRIVATE KEY-----\n-----END EC PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		read := reader(func(name string) ([]byte, error) {
			if name == "c" {
				return cert, nil
			}
			return key, nil
		})
		c, err := read.pair(Pair{"c", "k"})
		if (c == nil) == (err == nil) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, %q", c, err)
		}
	})
}

// FuzzNames: a name of a certificate as text has no byte that could end a field or a line.
func FuzzNames(f *testing.F) {
	f.Add(certstest.New(f, "ca").Cert.RawSubject)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s := distinguished(raw); strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			t.Errorf("%q", s)
		}
	})
}
