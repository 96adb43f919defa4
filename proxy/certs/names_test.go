package certs

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

func TestSuites(t *testing.T) {
	for text, tc := range map[string]struct {
		want    string // OpenSSL's names, in Go's order; "…": and more
		unknown string
	}{
		"ECDHE-RSA-AES128-GCM-SHA256": {"ECDHE-RSA-AES128-GCM-SHA256", ""},
		"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:!DSS": {"ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"},
		"EECDH+AESGCM:EDH+AESGCM":           {"ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384", "EDH+AESGCM"},
		"ECDHE+CHACHA20, AES128-SHA !ECDSA": {"ECDHE-RSA-CHACHA20-POLY1305 AES128-SHA", ""},
		"HIGH:!aNULL:!MD5:!SHA1":            {"ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305", ""},
		"ALL:-ECDHE:kRSA+AESGCM:@STRENGTH":  {"AES128-GCM-SHA256 AES256-GCM-SHA384", ""},
		"TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-AES256-SHA:RC4-SHA:DES-CBC3-SHA:+AES": {"ECDHE-ECDSA-AES256-SHA", "RC4-SHA DES-CBC3-SHA"},
		"RC4-SHA":                {"", "RC4-SHA"},
		"TLS_AES_256_GCM_SHA384": {"", ""},
		"HIGH:!ECDHE":            {"", ""},
		"":                       {"", ""},
		":!:-:+":                 {"", ""},
	} {
		ids, unknown, err := Suites(text)
		var got []string
		for _, id := range ids {
			got = append(got, SuiteName(id))
		}
		if strings.Join(got, " ") != tc.want || strings.Join(unknown, " ") != tc.unknown || (err == nil) != (tc.want != "") {
			t.Errorf("%q: %q, unknown %q, %v", text, got, unknown, err)
		}
	}
}

// TestSuitesAreGos: each is one that crypto/tls speaks over TLS 1.2, and nothing weaker than CBC with SHA-1 is in a group.
func TestSuitesAreGos(t *testing.T) {
	known := slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites())
	for _, s := range suites {
		if !slices.ContainsFunc(known, func(c *tls.CipherSuite) bool {
			return c.ID == s.id && slices.Contains(c.SupportedVersions, tls.VersionTLS12)
		}) {
			t.Errorf("%s is not spoken", s.name)
		}
	}
	ids, _, err := Suites("ALL")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tls.InsecureCipherSuites() {
		if slices.Contains(ids, c.ID) {
			t.Errorf("%s is in ALL", c.Name)
		}
	}
}

func TestCurves(t *testing.T) {
	for text, want := range map[string]string{"auto": "[] []", "X25519:prime256v1:X448": "[X25519 CurveP256] [X448]", "P-384": "[CurveP384] []", "secp256k1": "[] [secp256k1]", "X25519MLKEM768:secp521r1": "[X25519MLKEM768 CurveP521] []"} {
		ids, unknown, err := Curves(text)
		got := strings.NewReplacer("\"", "").Replace(strings.Join([]string{printed(ids), printed(unknown)}, " "))
		if got != want || (err == nil) != (len(ids) > 0 || text == "auto") {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	if CurveName(0) != "" || CurveName(9) != "0x0009" {
		t.Error("names of none and of an unknown one")
	}
}

func printed[T any](list []T) string {
	var out []string
	for _, x := range list {
		if s, ok := any(x).(interface{ String() string }); ok {
			out = append(out, s.String())
		} else {
			out = append(out, any(x).(string))
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

func TestVersions(t *testing.T) {
	for text, want := range map[string][2]uint16{
		"TLSv1.2 TLSv1.3": {tls.VersionTLS12, tls.VersionTLS13}, "TLSv1 TLSv1.1 TLSv1.2": {tls.VersionTLS12, tls.VersionTLS12}, "TLSv1.3": {tls.VersionTLS13, tls.VersionTLS13},
		"TLSv1": {}, "SSLv3 SSLv2": {}, "TLSv1.4": {}, "": {},
	} {
		least, most, err := Versions(strings.Fields(text))
		if least != want[0] || most != want[1] || (err == nil) != (want[0] != 0) {
			t.Errorf("%q: %x %x %v", text, least, most, err)
		}
	}
}

// TestSubject: names as OpenSSL writes them by RFC 2253.
func TestSubject(t *testing.T) {
	name := func(n pkix.Name) string {
		return Subject(certstest.New(t, "ca").Leaf([]string{"x"}, certstest.Subject(n)).Leaf)
	}
	for want, n := range map[string]pkix.Name{
		"CN=me,OU=b,O=a,C=DE":        {CommonName: "me", Organization: []string{"a"}, OrganizationalUnit: []string{"b"}, Country: []string{"DE"}},
		`CN=\ a\, b\+c\"\<\>\;\\d\ `: {CommonName: ` a, b+c"<>;\d `},
		`CN=\#x#`:                    {CommonName: "#x#"},
		`CN=J\C3\BCrg`:               {CommonName: "Jürg"},
		"emailAddress=a@b,CN=me":     {CommonName: "me", ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: "a@b"}}},
		"1.2.3.4=#130161,CN=me":      {CommonName: "me", ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: "a"}}},
	} {
		if got := name(n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
