package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxRead is the most that a file may have, in bytes.
const maxRead = 8 << 20

// ReadRegular reads a file that ends, of at most 8 MiB: of a pipe or a device nobody knows whether it does, and a reload
// would wait for it.
func ReadRegular(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that a pipe can be opened, and refused
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		text, err := io.ReadAll(io.LimitReader(f, maxRead+1))
		if err != nil || len(text) <= maxRead {
			return text, err
		}
	}
	return nil, fmt.Errorf("%s is no regular file of at most %d bytes", name, maxRead)
}

// reader reads the files of one load.
type reader func(name string) ([]byte, error)

// pair loads a certificate and its key.
func (read reader) pair(p Pair) (*tls.Certificate, error) {
	text, err := read(p.Cert)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	chain, err := chainOf(text)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", p.Cert, err)
	}
	if text, err = read(p.Key); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	key, err := keyOf(text)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", p.Key, err)
	}
	if err := match(chain[0], key); err != nil {
		return nil, fmt.Errorf("key %s does not belong to the certificate in %s: %w", p.Key, p.Cert, err)
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, x := range chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	return c, nil
}

// chainOf reads the certificates of a PEM text; the first is the server's own.
func chainOf(text []byte) (chain []*x509.Certificate, err error) {
	if err := wholePEM(text); err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" && block.Type != "X509 CERTIFICATE" && block.Type != "TRUSTED CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the %s certificate in it can't be read: %w", ordinal(len(chain)+1), err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errors.New("no PEM certificate is in it")
	}
	return chain, nil
}

// wholePEM tells of a block that can't be read, which pem.Decode passes over: a chain or a list of authorities would be
// shorter than whoever wrote it thinks.
func wholePEM(text []byte) error {
	begun := bytes.Count(text, []byte("\n-----BEGIN "))
	if bytes.HasPrefix(text, []byte("-----BEGIN ")) {
		begun++
	}
	whole := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		whole++
	}
	if whole < begun {
		return fmt.Errorf("%d PEM blocks begin in it, and %d of them can be read", begun, whole)
	}
	return nil
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

// keyOf reads the first private key of a PEM text.
func keyOf(text []byte) (crypto.Signer, error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, errors.New("no PEM private key is in it")
		}
		switch block.Type {
		case "ENCRYPTED PRIVATE KEY":
			return nil, errProtected
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
			if block.Headers["DEK-Info"] != "" {
				return nil, errProtected
			}
			return parseKey(block)
		}
	}
}

var errProtected = errors.New("the key has a password, which can't be given: write it without one, such as by openssl pkey -in KEY -out NEW")

func parseKey(block *pem.Block) (crypto.Signer, error) {
	var (
		key any
		err error
	)
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("the private key in it can't be read: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key of type %T can't sign: want RSA, ECDSA or Ed25519", key)
	}
	return signer, nil
}

// match reports how a key and a certificate differ.
func match(c *x509.Certificate, key crypto.Signer) error {
	equal, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok:
		return fmt.Errorf("a certificate with a key of type %T can't be served", c.PublicKey)
	case kindOf(c.PublicKey) != kindOf(key.Public()):
		return fmt.Errorf("the certificate is %s, the key is %s", kindOf(c.PublicKey), kindOf(key.Public()))
	case !equal.Equal(key.Public()):
		return errors.New("it is another one's")
	}
	return nil
}

func kindOf(key any) string {
	switch key.(type) {
	case *rsa.PublicKey:
		return "RSA"
	case *ecdsa.PublicKey:
		return "ECDSA"
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return fmt.Sprintf("%T", key)
}

// FileError is that a file of authorities or of a key of session tickets can't be used, for who wants to say which setting
// named it.
type FileError struct {
	File string
	err  error
}

// Error names the file.
func (e *FileError) Error() string { return e.err.Error() }

// Unwrap is errors.Unwrap's.
func (e *FileError) Unwrap() error { return e.err }

// authorities reads the certificates of files into one pool, and as a list for each file. An empty name has none.
func (read reader) authorities(files ...string) (pool *x509.CertPool, list [][]*x509.Certificate, err error) {
	pool = x509.NewCertPool()
	for _, file := range files {
		if file == "" {
			list = append(list, nil)
			continue
		}
		text, err := read(file)
		if err != nil {
			return nil, nil, &FileError{file, fmt.Errorf("authorities: %w", err)}
		}
		chain, err := chainOf(text)
		if err != nil {
			return nil, nil, &FileError{file, fmt.Errorf("authorities %s: %w", file, err)}
		}
		for _, c := range chain {
			pool.AddCert(c)
		}
		list = append(list, chain)
	}
	return pool, list, nil
}

// ticketKey makes a key of ours of a file as nginx wants it. Tickets are not nginx's all the same: proxies with the same
// file know each other's.
func (read reader) ticketKey(file string) (key [32]byte, err error) {
	text, err := read(file)
	switch {
	case err != nil:
		return key, &FileError{file, fmt.Errorf("key of session tickets: %w", err)}
	case len(text) != 48 && len(text) != 80:
		return key, &FileError{file, fmt.Errorf("key of session tickets %s has %d bytes: want 48 or 80, such as by openssl rand 80", file, len(text))}
	}
	return sha256.Sum256(append([]byte("upstrand ticket key\x00"), text...)), nil
}

// selfSigned tells whether a certificate is signed by itself.
func selfSigned(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) }
