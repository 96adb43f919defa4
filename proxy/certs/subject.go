package certs

import (
	"crypto/sha1" //nolint:gosec // $ssl_client_fingerprint is a SHA-1
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"strconv"
	"strings"
	"time"
)

// shortNames are those that OpenSSL writes for what may stand in a name, by object identifier.
var shortNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
	"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.13": "description", "2.5.4.15": "businessCategory", "2.5.4.17": "postalCode",
	"2.5.4.20": "telephoneNumber", "2.5.4.41": "name", "2.5.4.42": "GN", "2.5.4.43": "initials", "2.5.4.44": "generationQualifier",
	"2.5.4.46": "dnQualifier", "2.5.4.65": "pseudonym", "2.5.4.97": "organizationIdentifier",
	"0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC", "1.2.840.113549.1.9.1": "emailAddress",
	"1.2.840.113549.1.9.2": "unstructuredName", "1.3.6.1.4.1.311.60.2.1.1": "jurisdictionL", "1.3.6.1.4.1.311.60.2.1.2": "jurisdictionST",
	"1.3.6.1.4.1.311.60.2.1.3": "jurisdictionC",
}

// Subject is the name of a certificate's owner as RFC 2253 writes it, in OpenSSL's form.
func Subject(c *x509.Certificate) string { return distinguished(c.RawSubject) }

// Issuer is the name of who signed it, likewise.
func Issuer(c *x509.Certificate) string { return distinguished(c.RawIssuer) }

func distinguished(raw []byte) string {
	var name pkix.RDNSequence
	if rest, err := asn1.Unmarshal(raw, &name); err != nil || len(rest) > 0 {
		return ""
	}
	var b strings.Builder
	for i := len(name) - 1; i >= 0; i-- {
		for j := len(name[i]) - 1; j >= 0; j-- {
			if b.Len() > 0 {
				if j == len(name[i])-1 {
					b.WriteByte(',')
				} else {
					b.WriteByte('+')
				}
			}
			attribute(&b, name[i][j])
		}
	}
	return b.String()
}

// attribute writes NAME=VALUE; of one that OpenSSL does not know, the number and its bytes.
func attribute(b *strings.Builder, a pkix.AttributeTypeAndValue) {
	id := a.Type.String()
	text, isText := a.Value.(string)
	if short := shortNames[id]; short != "" && isText {
		b.WriteString(short + "=")
		escape(b, text)
		return
	}
	b.WriteString(id + "=#")
	if der, err := asn1.Marshal(a.Value); err == nil {
		b.WriteString(strings.ToUpper(hex.EncodeToString(der)))
	}
}

func escape(b *strings.Builder, text string) {
	for i := range len(text) {
		c := text[i]
		switch {
		case c < ' ', c >= 0x7f:
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'\\', digits[c>>4], digits[c&15]})
			continue
		case strings.IndexByte(`,+"<>;\`, c) >= 0, i == 0 && (c == ' ' || c == '#'), i == len(text)-1 && c == ' ':
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
}

// PEM is a certificate as text.
func PEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// Fingerprint is the SHA-1 of a certificate in hexadecimal digits.
func Fingerprint(c *x509.Certificate) string {
	sum := sha1.Sum(c.Raw) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// Serial is a certificate's number in hexadecimal digits, two for each byte.
func Serial(c *x509.Certificate) string {
	n := c.SerialNumber
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	b := n.Bytes()
	if len(b) == 0 {
		b = []byte{0}
	}
	return sign + strings.ToUpper(hex.EncodeToString(b))
}

// Moment is a time as OpenSSL prints those of certificates.
func Moment(t time.Time) string { return t.UTC().Format("Jan _2 15:04:05 2006 GMT") }

// DaysLeft is the whole days until a certificate expires; 0 when it has.
func DaysLeft(c *x509.Certificate, now time.Time) string {
	return strconv.FormatInt(max(c.NotAfter.Unix()-now.Unix(), 0)/86400, 10)
}
