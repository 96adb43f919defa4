package forward

import "github.com/upstrand/upstrand/proxy/balance"

// Hooks are what whoever runs an Exchange has a say in. With them the exchange makes no answer of its own: when no
// backend's answer can be given, or the one at hand is intercepted, Run returns with Outcome.Answered false, nothing
// has gone to the client, and Outcome.Status says what it is to be told. The methods are called from Run's goroutine.
type Hooks interface {
	// Ask is what the request says to an upstream that it enters; nil: nothing.
	Ask(g *balance.Group) *balance.Ask
	// Head is shown the final head of the attempt that stays, before anything of it goes to the client, and after it is
	// sure that no other attempt follows. It gives the fields to deliver; those it was given belong to the backend and
	// must not be changed. False intercepts: the answer is left, and its connection with it unless the rest is at hand.
	Head(g *balance.Group, status int, fields []Field) ([]Field, bool)
	// Session is the session that the answer belongs to, for `sticky learn`; nil: none. It is asked after Head.
	Session(g *balance.Group) []byte
	// Trailer is shown what followed the body of a delivered answer, and gives what of it goes to the client.
	Trailer(fields []Field) []Field
}

// head feeds the method and gives the fields that go to the client; false: nothing of this answer does.
func (x *Exchange) head(status int, head []Field) (fields []Field, deliver bool) {
	if x.Hooks == nil {
		x.headPass(nil)
		x.fields = endToEnd(x.fields[:0], head)
		return x.fields, true
	}
	fields, deliver = x.Hooks.Head(x.group, status, head)
	x.headPass(x.Hooks.Session(x.group))
	return fields, deliver
}

// intercept leaves an answer that is replaced by another one: for the peer it is a success.
func (x *Exchange) intercept(status int) {
	x.out.Status, x.out.Intercepted = status, true
	x.backend.Close()
	x.succeed()
}

// succeed ends an attempt whose answer was read to its last byte, or is left because nobody wants the rest.
func (x *Exchange) succeed() {
	x.endTry(0)
	x.endPass(balance.Succeeded)
}
