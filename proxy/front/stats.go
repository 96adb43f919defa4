package front

// Stats are counters as stub_status shows them.
type Stats struct {
	Accepts, Handled, Requests        uint64 // since the start; Handled: those that met no limit
	Active, Reading, Writing, Waiting int64  // connections now: all, sending a head, in a request, and unused

	Refused [Refusals]uint64 // connections since the start that ended before any request, by Refusal
}

// Refusal is why a connection ended before any request.
type Refusal uint8

// The refusals.
const (
	RefusedEnding        Refusal = iota // the server was ending
	RefusedConns                        // more than Settings.Conns
	RefusedPerAddress                   // more than Settings.ConnsPerAddress
	RefusedProxyProtocol                // no valid header of the PROXY protocol came in time
	RefusedTLS                          // the TLS handshake failed
	Refusals             = iota
)

var refusalNames = [Refusals]string{"ending", "max_conns", "max_conns_per_address", "proxy_protocol", "tls_handshake"}

// String is the bounded word for metrics and logs.
func (r Refusal) String() string { return refusalNames[r] }

// Plus is the sum, for servers that are shown as one.
func (s Stats) Plus(o Stats) Stats {
	refused := s.Refused
	for i, n := range o.Refused {
		refused[i] += n
	}
	return Stats{
		Accepts: s.Accepts + o.Accepts, Handled: s.Handled + o.Handled, Requests: s.Requests + o.Requests,
		Active: s.Active + o.Active, Reading: s.Reading + o.Reading, Writing: s.Writing + o.Writing, Waiting: s.Waiting + o.Waiting,
		Refused: refused,
	}
}
