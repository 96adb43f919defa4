package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
	"time"
	"weak"
)

// Verdict is what the certificate of a client is worth.
type Verdict struct {
	Shown  bool   // there is one
	Reason string // why it is not good, in OpenSSL's words; empty: it is
	loose  bool   // only its authority is unknown
}

// String is $ssl_client_verify.
func (v Verdict) String() string {
	switch {
	case !v.Shown:
		return "NONE"
	case v.Reason == "":
		return "SUCCESS"
	}
	return "FAILED:" + v.Reason
}

// The statuses of clients that may not come in; nginx's own, which clients are told as 400.
const (
	StatusBadCertificate = 495
	StatusNoCertificate  = 496
)

// Refuses is the status for a client with that verdict; 0: it may come in.
func (s *Server) Refuses(v Verdict) int {
	switch {
	case s.set.Verify == Off:
	case v.Reason != "" && (s.set.Verify != OptionalNoCA || !v.loose):
		return StatusBadCertificate
	case s.set.Verify == On && !v.Shown:
		return StatusNoCertificate
	}
	return 0
}

// mostVerdicts are kept at once: one for each open connection with a certificate is wanted.
const mostVerdicts = 8192

// verdicts are those of connections that are open. The certificate of a connection is one for all its requests. It is held
// weakly: anybody can make one of a quarter of a megabyte, and it must not stay when its connection is gone.
type verdicts struct {
	mu   sync.Mutex
	made map[weak.Pointer[x509.Certificate]]judged
}

type judged struct {
	verdict Verdict
	until   time.Time
}

// rejudged is how long a verdict holds on an open connection.
const rejudged = time.Minute

// Judge says what the client of a connection has shown, by the authorities of now.
func (s *Server) Judge(cs *tls.ConnectionState) Verdict {
	if cs == nil || len(cs.PeerCertificates) == 0 || s.set.Verify == Off {
		return Verdict{}
	}
	id, now := s.now.Load(), time.Now()
	key := weak.Make(cs.PeerCertificates[0])
	if known, ok := id.judged.find(key, now); ok {
		return known
	}
	v := id.judge(cs.PeerCertificates, now)
	id.judged.keep(key, judged{v, now.Add(rejudged)})
	return v
}

func (v *verdicts) find(key weak.Pointer[x509.Certificate], now time.Time) (Verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	j, ok := v.made[key]
	return j.verdict, ok && now.Before(j.until)
}

func (v *verdicts) keep(key weak.Pointer[x509.Certificate], j judged) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.made == nil || len(v.made) >= mostVerdicts {
		v.made = map[weak.Pointer[x509.Certificate]]judged{}
	}
	v.made[key] = j
}

// judge verifies a chain as OpenSSL does for a server. It may take milliseconds, so nobody waits for it with a lock.
func (id *identity) judge(chain []*x509.Certificate, now time.Time) Verdict {
	roots := id.clients
	if roots == nil {
		roots = x509.NewCertPool() // the system's are no clients' authorities
	}
	chains, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between(chain), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	v := Verdict{Shown: true}
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
	)
	switch {
	case err == nil && shortEnough(chains, id.set.Depth):
	case err == nil:
		v.Reason = "certificate chain too long"
	case errors.As(err, &unknown):
		v.Reason, v.loose = unknownReason(chain), true
	case errors.As(err, &invalid):
		v.Reason = invalidReason(&invalid, now)
	default:
		v.Reason = "certificate verification failed"
	}
	return v
}

func between(chain []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range chain[1:] {
		pool.AddCert(c)
	}
	return pool
}

// shortEnough: between the first certificate and the root are at most so many; below 0: any number.
func shortEnough(chains [][]*x509.Certificate, depth int) bool {
	for _, c := range chains {
		if depth < 0 || len(c)-2 <= depth {
			return true
		}
	}
	return false
}

func unknownReason(chain []*x509.Certificate) string {
	switch {
	case len(chain) == 1 && selfSigned(chain[0]):
		return "self-signed certificate"
	case selfSigned(chain[len(chain)-1]):
		return "self-signed certificate in certificate chain"
	case len(chain) > 1:
		return "unable to get local issuer certificate"
	}
	return "unable to verify the first certificate"
}

func invalidReason(e *x509.CertificateInvalidError, now time.Time) string {
	switch e.Reason {
	case x509.Expired:
		if e.Cert != nil && now.Before(e.Cert.NotBefore) {
			return "certificate is not yet valid"
		}
		return "certificate has expired"
	case x509.IncompatibleUsage:
		return "unsuitable certificate purpose"
	case x509.NotAuthorizedToSign:
		return "invalid CA certificate"
	case x509.TooManyIntermediates:
		return "path length constraint exceeded"
	}
	return "certificate verification failed"
}
