package certs

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// suite is a cipher suite of TLS 1.2 by what OpenSSL's words say of it.
type suite struct {
	id       uint16
	name     string
	words    []string // key exchange, authentication, cipher, mode and digest
	explicit bool     // in no group: without forward secrecy
}

// suites are those that can be spoken. RC4 and 3DES are left out.
var suites = []suite{
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256", words("ECDHE ECDSA AES128 AESGCM SHA256"), false},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256", words("ECDHE RSA AES128 AESGCM SHA256"), false},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384", words("ECDHE ECDSA AES256 AESGCM SHA384"), false},
	{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384", words("ECDHE RSA AES256 AESGCM SHA384"), false},
	{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305", words("ECDHE ECDSA CHACHA20"), false},
	{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305", words("ECDHE RSA CHACHA20"), false},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, "ECDHE-ECDSA-AES128-SHA", words("ECDHE ECDSA AES128 SHA1"), false},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, "ECDHE-RSA-AES128-SHA", words("ECDHE RSA AES128 SHA1"), false},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, "ECDHE-ECDSA-AES256-SHA", words("ECDHE ECDSA AES256 SHA1"), false},
	{tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, "ECDHE-RSA-AES256-SHA", words("ECDHE RSA AES256 SHA1"), false},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, "ECDHE-ECDSA-AES128-SHA256", words("ECDHE ECDSA AES128 SHA256"), true},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, "ECDHE-RSA-AES128-SHA256", words("ECDHE RSA AES128 SHA256"), true},
	{tls.TLS_RSA_WITH_AES_128_GCM_SHA256, "AES128-GCM-SHA256", words("kRSA RSA AES128 AESGCM SHA256"), true},
	{tls.TLS_RSA_WITH_AES_256_GCM_SHA384, "AES256-GCM-SHA384", words("kRSA RSA AES256 AESGCM SHA384"), true},
	{tls.TLS_RSA_WITH_AES_128_CBC_SHA256, "AES128-SHA256", words("kRSA RSA AES128 SHA256"), true},
	{tls.TLS_RSA_WITH_AES_128_CBC_SHA, "AES128-SHA", words("kRSA RSA AES128 SHA1"), true},
	{tls.TLS_RSA_WITH_AES_256_CBC_SHA, "AES256-SHA", words("kRSA RSA AES256 SHA1"), true},
}

func words(s string) []string { return strings.Fields(s) }

// groups are OpenSSL's words for several suites at once; the words of the list above mean themselves.
var groups = map[string][]string{
	"ALL": nil, "DEFAULT": nil, "COMPLEMENTOFDEFAULT": {"none"}, "HIGH": nil, "FIPS": nil, "TLSv1.2": {"SHA256", "SHA384", "CHACHA20"},
	"EECDH": {"ECDHE"}, "kEECDH": {"ECDHE"}, "kECDHE": {"ECDHE"}, "aRSA": {"RSA"}, "aECDSA": {"ECDSA"}, "SHA": {"SHA1"},
	"AES": {"AES128", "AES256"}, "PROFILE=SYSTEM": nil,
}

// Suites reads a list as OpenSSL has it. unknown are the words that add a suite which isn't spoken here; the error says that
// none is left.
func Suites(text string) (ids []uint16, unknown []string, err error) {
	var chosen, banned []uint16
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ':' || r == ' ' || r == ',' || r == ';' }) {
		sign := word[0]
		if sign == '!' || sign == '-' || sign == '+' {
			word = word[1:]
		}
		if strings.HasPrefix(word, "@") || strings.HasPrefix(word, "TLS_") || word == "" {
			continue // strength and security level; the suites of TLS 1.3 are not chosen by this list, as in OpenSSL
		}
		found := matching(word)
		switch sign {
		case '!':
			banned = append(banned, found...)
		case '-':
			chosen = slices.DeleteFunc(chosen, func(id uint16) bool { return slices.Contains(found, id) })
		case '+': // moves to the end; the order is Go's
		default:
			if len(found) == 0 {
				unknown = append(unknown, word)
			}
			chosen = append(chosen, found...)
		}
	}
	for _, s := range suites {
		if slices.Contains(chosen, s.id) && !slices.Contains(banned, s.id) {
			ids = append(ids, s.id)
		}
	}
	if len(ids) == 0 {
		return nil, unknown, fmt.Errorf("%q leaves no cipher", text)
	}
	return ids, unknown, nil
}

// matching are the suites of one word, which may be several joined by +.
func matching(word string) (ids []uint16) {
	for _, s := range suites {
		if s.name == word || s.fits(word) {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// fits tells whether a suite is of all groups in a word. Those without forward secrecy are only where they are named.
func (s *suite) fits(word string) bool {
	named := false
	for part := range strings.SplitSeq(word, "+") {
		alternatives, group := groups[part]
		switch {
		case group && alternatives == nil:
		case group && slices.ContainsFunc(alternatives, func(w string) bool { return slices.Contains(s.words, w) }):
		case !group && slices.Contains(s.words, part):
		default:
			return false
		}
		named = named || part == "kRSA"
	}
	return named || !s.explicit
}

// SuiteName is OpenSSL's name of a cipher suite; of TLS 1.3 that is the standard's.
func SuiteName(id uint16) string {
	for i := range suites {
		if suites[i].id == id {
			return suites[i].name
		}
	}
	return tls.CipherSuiteName(id)
}

var curves = []struct {
	id    tls.CurveID
	names []string // the first is OpenSSL's
}{
	{tls.X25519MLKEM768, []string{"X25519MLKEM768"}},
	{tls.SecP256r1MLKEM768, []string{"SecP256r1MLKEM768"}},
	{tls.SecP384r1MLKEM1024, []string{"SecP384r1MLKEM1024"}},
	{tls.X25519, []string{"X25519", "x25519"}},
	{tls.CurveP256, []string{"prime256v1", "secp256r1", "P-256"}},
	{tls.CurveP384, []string{"secp384r1", "P-384"}},
	{tls.CurveP521, []string{"secp521r1", "P-521"}},
}

// Curves reads a list as ssl_ecdh_curve has it. nil: Go's choice.
func Curves(text string) (ids []tls.CurveID, unknown []string, err error) {
	if text == "auto" {
		return nil, nil, nil
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ':' || r == '/' }) {
		name, found := strings.TrimLeft(word, "?*-"), false
		for _, c := range curves {
			if slices.Contains(c.names, name) {
				ids, found = append(ids, c.id), true
			}
		}
		if !found {
			unknown = append(unknown, name)
		}
	}
	if len(ids) == 0 {
		return nil, unknown, fmt.Errorf("%q names no curve that is spoken here", text)
	}
	return ids, unknown, nil
}

// CurveName is OpenSSL's name of a key exchange; empty for none.
func CurveName(id tls.CurveID) string {
	for _, c := range curves {
		if c.id == id {
			return c.names[0]
		}
	}
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("0x%04x", uint16(id))
}

// CurveNames are the names that Curves knows.
func CurveNames() (names []string) {
	for _, c := range curves {
		names = append(names, c.names[0])
	}
	return names
}

var versions = []struct {
	id   uint16
	name string
}{
	{0x0200, "SSLv2"}, {0x0300, "SSLv3"}, {tls.VersionTLS10, "TLSv1"}, {tls.VersionTLS11, "TLSv1.1"}, {tls.VersionTLS12, "TLSv1.2"}, {tls.VersionTLS13, "TLSv1.3"},
}

// Versions reads the words of ssl_protocols. Those below TLS 1.2 are not spoken.
func Versions(names []string) (least, most uint16, err error) {
	for _, name := range names {
		i := slices.IndexFunc(versions, func(v struct {
			id   uint16
			name string
		}) bool {
			return v.name == name
		})
		if i < 0 {
			return 0, 0, fmt.Errorf("%q is no version", name)
		}
		id := versions[i].id
		if id < tls.VersionTLS12 {
			continue
		}
		if least == 0 || id < least {
			least = id
		}
		most = max(most, id)
	}
	if least == 0 {
		return 0, 0, fmt.Errorf("%s: none of them is safe enough to be spoken", strings.Join(names, " "))
	}
	return least, most, nil
}

// VersionName is OpenSSL's name of a TLS version.
func VersionName(id uint16) string {
	for _, v := range versions {
		if v.id == id {
			return v.name
		}
	}
	return tls.VersionName(id)
}
