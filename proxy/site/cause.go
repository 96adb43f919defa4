package site

import (
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/certs"
	"github.com/upstrand/upstrand/proxy/forward"
)

// Failures is an Env that is told of attempts which gave no answer.
type Failures interface {
	// Failed is called from the request's goroutine, and has to be quick.
	Failed(f Failed)
}

// Failed is an attempt that gave no answer, or half of one. It must not be kept.
type Failed struct {
	In       *forward.Request // as the client sent it
	Upstream string
	Peer     *balance.Peer // nil: nobody could be given
	Class    string        // bounded
	Err      error
}

// Failed is forward.Failures'.
func (h *proxyHooks) Failed(upstream string, peer *balance.Peer, class string, err error) {
	r := (*request)(h)
	if to, ok := r.env.(Failures); ok {
		to.Failed(Failed{r.in, upstream, peer, class, err})
	}
}

// Why a request was answered by us, beside what forward.Outcome and statuses say.
const (
	whyReturn      = "return"      // as a directive says
	whyIntercepted = "intercepted" // a backend answered, and proxy_intercept_errors or an upstrand has it replaced
	whyNoUpstream  = "no_upstream" // what a proxy_pass with variables names is nobody
)

// whyOf are the causes of statuses that we give ourselves.
var whyOf = map[int]string{
	400: "bad_request", 403: "denied", 404: "not_found", 405: "method_not_allowed", 408: "client_timeout", 413: "body_too_large",
	414: "uri_too_long", 417: "bad_request", 421: "misdirected", 431: "head_too_large", 500: "internal", 501: "bad_request", 505: "bad_request",
	statusHeadTooLarge: "head_too_large", certs.StatusBadCertificate: "client_certificate", certs.StatusNoCertificate: "client_certificate", statusPlain: "plain_http",
}

// cause is why the request got an answer of ours; empty when it is a backend's, or none that says that something is wrong.
func (r *request) cause() string {
	if r.status < 400 {
		return ""
	}
	return r.why
}
