package proxy

import (
	"bytes"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
	"github.com/upstrand/upstrand/proxy/site"
)

// Failed is forward.Failures', for a published route.
func (w *routed) Failed(upstream string, peer *balance.Peer, class string, err error) {
	w.proxy.failed(w.in, upstream, peer, class, err)
}

// Failed is site.Failures'.
func (t *table) Failed(f site.Failed) { t.proxy.failed(f.In, f.Upstream, f.Peer, f.Class, f.Err) }

// failed says why an attempt gave no answer: what the client is told, a 502 or 504, has no reason in it.
func (p *Proxy) failed(in *forward.Request, upstream string, peer *balance.Peer, class string, err error) {
	line := p.failures.line(zerolog.WarnLevel)
	if line == nil {
		return
	}
	line, text := line.Str("upstream", upstream), "an attempt failed: nobody can be given"
	if peer != nil {
		line, text = line.Str("addr", peer.Addr()), "an attempt failed"
	}
	if err != nil {
		line = line.Str("class", class).Str("error", err.Error())
	}
	withRequest(line, in).Msg(text)
}

// withRequest adds what a client asked for, without the query, which is nobody's but the client's.
func withRequest(line *zerolog.Event, in *forward.Request) *zerolog.Event {
	path, _, _ := bytes.Cut(in.Target, []byte{'?'})
	return line.Bytes("method", in.Method).Bytes("host", in.Authority).Bytes("path", path)
}

// refused is front.Options.Refused: whoever sends no valid header of the PROXY protocol is likely set up wrongly. TLS
// handshakes fail all the time.
func (p *Proxy) refused(why front.Refusal, info *front.ConnInfo, err error) {
	if why != front.RefusedProxyProtocol {
		p.log.Debug().Err(err).Stringer("reason", why).Stringer("client", info.Remote).Msg("a client's connection could not begin")
		return
	}
	p.refusals.line(zerolog.WarnLevel).Err(err).Stringer("client", info.Remote).Stringer("listen", info.Local).
		Msg("a connection is refused: it began without a valid PROXY protocol header")
}
