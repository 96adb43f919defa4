package forward

import (
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
)

// TestDecide is what each failure means, in the order in which it is decided.
func TestDecide(t *testing.T) {
	derived := DerivedPolicy()
	withStatus := Policy{Next: OnError | OnTimeout | OnHTTP503 | OnHTTP404, Tries: 3}
	posts := Policy{Next: OnError | OnTimeout, NonIdempotent: true, Tries: 3}
	sent := Progress{Sent: true}
	base := Attempt{Method: []byte("GET"), Sent: sent, Replayable: true, Tries: 3}
	with := func(set func(*Attempt)) Attempt { a := base; set(&a); return a }
	post := []byte("POST")
	for _, tc := range []struct {
		name   string
		a      Attempt
		p      Policy
		action Action
		result balance.Result
		status int
	}{
		{"an answer", base, derived, Deliver, balance.Succeeded, 0},
		{"client gone, with an answer", with(func(a *Attempt) { a.ClientGone = true }), derived, Drop, balance.Undone, 0},
		{"client gone, with a failure", with(func(a *Attempt) { a.ClientGone, a.Class = true, OnError }), derived, Drop, balance.Undone, 0},
		{"unread GET", with(func(a *Attempt) { a.Class, a.Sent.Unread = OnError, true }), derived, SamePeer, balance.Undone, 0},
		{"unread POST", with(func(a *Attempt) { a.Class, a.Sent.Unread, a.Method = OnError, true, post }), derived, SamePeer, balance.Undone, 0},
		{"unread on the last try", with(func(a *Attempt) { a.Class, a.Sent.Unread, a.Tries = OnError, true, 1 }), derived, SamePeer, balance.Undone, 0},
		{"unread twice", with(func(a *Attempt) { a.Class, a.Sent.Unread, a.Redone = OnError, true, true }), derived, NextPeer, balance.Broken, 0},
		{"unread, body not held", with(func(a *Attempt) { a.Class, a.Sent.Unread, a.Replayable = OnError, true, false }), derived, Fail, balance.Broken, 502},
		{"peer gone again and again", with(func(a *Attempt) { a.Class, a.Uncounted = PeerGone, 64 }), derived, Fail, balance.Undone, 502},
		{"kept connection ended", with(func(a *Attempt) { a.Class, a.Sent.Kept, a.Tries = OnError, true, 1 }), derived, NextPeer, balance.Undone, 0},
		{"kept connection ended, POST", with(func(a *Attempt) { a.Class, a.Sent.Kept, a.Method = OnError, true, post }), derived, Fail, balance.Undone, 502},
		{"kept connection ended within an answer", with(func(a *Attempt) { a.Class, a.Sent.Kept, a.Sent.In = OnError, true, 9 }), derived, NextPeer, balance.Broken, 0},
		{"kept connection timed out", with(func(a *Attempt) { a.Class, a.Sent.Kept = OnTimeout, true }), derived, NextPeer, balance.Broken, 0},
		{"kept connections ended too often", with(func(a *Attempt) { a.Class, a.Sent.Kept, a.Uncounted = OnError, true, 64 }), derived, NextPeer, balance.Broken, 0},
		{"kept connection ended, off", with(func(a *Attempt) { a.Class, a.Sent.Kept = OnError, true }), Policy{}, Fail, balance.Undone, 502},
		{"peer gone", with(func(a *Attempt) { a.Class, a.Sent = PeerGone, Progress{} }), derived, NextPeer, balance.Undone, 0},
		{"peer gone, no budget and no time", with(func(a *Attempt) { a.Class, a.NoBudget, a.Elapsed, a.Tries = PeerGone, true, time.Hour, 1 }), derived, NextPeer, balance.Undone, 0},
		{"peer gone, body not held", with(func(a *Attempt) { a.Class, a.Replayable = PeerGone, false }), derived, Fail, balance.Undone, 502},
		{"the request can't be sent", with(func(a *Attempt) { a.Class, a.Sent = BadRequest, Progress{} }), derived, Fail, balance.Undone, 400},
		{"no socket", with(func(a *Attempt) { a.Class, a.Sent = NoSocket, Progress{} }), derived, Fail, balance.Undone, 503},
		{"client's body broken", with(func(a *Attempt) { a.Class = ClientBody }), derived, Fail, balance.Undone, 400},

		{"error", with(func(a *Attempt) { a.Class = OnError }), derived, NextPeer, balance.Broken, 0},
		{"timeout", with(func(a *Attempt) { a.Class = OnTimeout }), derived, NextPeer, balance.Broken, 0},
		{"invalid header is not listed", with(func(a *Attempt) { a.Class = OnInvalidHeader }), derived, Fail, balance.Broken, 502},
		{"last try, error", with(func(a *Attempt) { a.Class, a.Tries = OnError, 1 }), derived, Fail, balance.Broken, 502},
		{"last try, timeout", with(func(a *Attempt) { a.Class, a.Tries = OnTimeout, 1 }), derived, Fail, balance.Broken, 504},
		{"in time, just", with(func(a *Attempt) { a.Class, a.Elapsed = OnTimeout, 10*time.Second-1 }), derived, NextPeer, balance.Broken, 0},
		{"out of time", with(func(a *Attempt) { a.Class, a.Elapsed = OnTimeout, 10*time.Second }), derived, Fail, balance.Broken, 504},
		{"no budget", with(func(a *Attempt) { a.Class, a.NoBudget = OnError, true }), derived, Fail, balance.Broken, 502},
		{"body not held", with(func(a *Attempt) { a.Class, a.Replayable = OnError, false }), derived, Fail, balance.Broken, 502},
		{"POST sent", with(func(a *Attempt) { a.Class, a.Method = OnError, post }), derived, Fail, balance.Broken, 502},
		{"POST not sent", with(func(a *Attempt) { a.Class, a.Method, a.Sent = OnError, post, Progress{} }), derived, NextPeer, balance.Broken, 0},
		{"PATCH sent", with(func(a *Attempt) { a.Class, a.Method = OnError, []byte("PATCH") }), derived, Fail, balance.Broken, 502},
		{"LOCK sent", with(func(a *Attempt) { a.Class, a.Method = OnError, []byte("LOCK") }), derived, Fail, balance.Broken, 502},
		{"PUT sent", with(func(a *Attempt) { a.Class, a.Method = OnError, []byte("PUT") }), derived, NextPeer, balance.Broken, 0},
		{"POST sent, non_idempotent", with(func(a *Attempt) { a.Class, a.Method = OnError, post }), posts, NextPeer, balance.Broken, 0},

		{"listed 503", with(func(a *Attempt) { a.Class = OnHTTP503 }), withStatus, NextPeer, balance.Broken, 0},
		{"listed 404 is no failure", with(func(a *Attempt) { a.Class = OnHTTP404 }), withStatus, NextPeer, balance.Succeeded, 0},
		{"listed 503 on the last try passes", with(func(a *Attempt) { a.Class, a.Tries = OnHTTP503, 1 }), withStatus, Deliver, balance.Succeeded, 0},
		{"listed 503 to a POST passes", with(func(a *Attempt) { a.Class, a.Method = OnHTTP503, post }), withStatus, Deliver, balance.Succeeded, 0},
		{"listed 503 without budget passes", with(func(a *Attempt) { a.Class, a.NoBudget = OnHTTP503, true }), withStatus, Deliver, balance.Succeeded, 0},
		{"listed 503, body not held, passes", with(func(a *Attempt) { a.Class, a.Replayable = OnHTTP503, false }), withStatus, Deliver, balance.Succeeded, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Decide(tc.a, &tc.p)
			if want := (Decision{tc.action, tc.result, tc.status}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}
