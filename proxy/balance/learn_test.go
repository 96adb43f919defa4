package balance

import (
	"fmt"
	"testing"
	"time"
)

func learnSpec(servers ...Server) Spec {
	return Spec{Servers: servers, Sticky: StickySpec{Kind: "learn", Timeout: time.Minute}}
}

// teach makes a request whose answer makes a session, and gives who answered.
func (l *lab) teach(session string) string {
	p, id := l.open(nil)
	p.Learn([]byte(session))
	p.Header()
	p.End(Succeeded)
	return id
}

// bound reports whether requests of the session go to id, whosever turn it is. It leaves the session as it is.
func (l *lab) bound(session, id string) bool {
	for range 3 {
		p, got := l.open(of(session))
		p.End(Undone)
		if got != id {
			return false
		}
	}
	return true
}

func TestLearn(t *testing.T) {
	l := newLab(t, learnSpec(server("a", 1), server("b", 1)))
	if l.teach("one")+l.teach("two") != "ab" {
		t.Fatal("round robin first")
	}
	if !l.bound("one", "a") || !l.bound("two", "b") {
		t.Error("a session goes to who made it")
	}
	if l.bound("three", "a") || l.bound("three", "b") {
		t.Error("an unknown session goes nowhere in particular")
	}
	l.pick(of("three"))
	if l.bound("three", "a") || l.bound("three", "b") {
		t.Error("an answer to an unknown session that makes none binds nothing")
	}
}

// TestLearnedIsForgotten when it was not refreshed for the timeout.
func TestLearnedIsForgotten(t *testing.T) {
	l := newLab(t, learnSpec(server("a", 1), server("b", 1)))
	l.teach("s")
	for range 5 {
		l.wait(59 * time.Second)
		if l.pick(of("s")) != "a" {
			t.Fatal("each answer refreshes the session")
		}
	}
	l.wait(59*time.Second + 999*time.Millisecond)
	if !l.bound("s", "a") {
		t.Error("forgotten too early")
	}
	l.wait(time.Millisecond)
	if l.bound("s", "a") {
		t.Error("still known")
	}
}

// TestLearnedMoves to who answers when its peer can't.
func TestLearnedMoves(t *testing.T) {
	l := newLab(t, learnSpec(server("a", 1), server("b", 1)))
	l.teach("s")
	p, _ := l.open(of("s"))
	p.End(Broken)
	if pickID(p) != "b" {
		t.Fatal("b is the other one")
	}
	p.Header()
	p.End(Succeeded)
	l.wait(20 * time.Second) // a is back
	if !l.bound("s", "b") {
		t.Error("the session did not move")
	}
}

// TestWhatTeachesNothing: an answer that no client got, and one that was cut off.
func TestWhatTeachesNothing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		headed bool
		result Result
		want   bool
	}{{"delivered", true, Succeeded, true}, {"left for another attempt", false, Succeeded, false},
		{"failed", false, Broken, false}, {"the client left", true, Undone, false}} {
		l := newLab(t, learnSpec(server("a", 1), server("b", 1)))
		p, _ := l.open(nil)
		p.Learn([]byte("s"))
		if tc.headed {
			p.Header()
		}
		p.End(tc.result)
		l.wait(20 * time.Second)
		if got := l.bound("s", "a"); got != tc.want {
			t.Errorf("%s: learned %v", tc.name, got)
		}
	}
}

// TestLearnOnHeader: from the head of the answer on, in either order of the two calls; else from its end on.
func TestLearnOnHeader(t *testing.T) {
	for _, onHeader := range []bool{true, false} {
		for _, learnFirst := range []bool{true, false} {
			spec := learnSpec(server("a", 1), server("b", 1))
			spec.Sticky.OnHeader = onHeader
			l := newLab(t, spec)
			p, _ := l.open(nil)
			if learnFirst {
				p.Learn([]byte("s"))
				p.Header()
			} else {
				p.Header()
				p.Learn([]byte("s"))
			}
			if got := l.bound("s", "a"); got != onHeader {
				t.Errorf("on header %v, learn first %v: learned %v before the end", onHeader, learnFirst, got)
			}
			p.End(Succeeded)
			if !l.bound("s", "a") {
				t.Error("not learned at the end")
			}
		}
	}
}

// TestLearnedSurvivesSwaps of others; who leaves takes its sessions along, also when it comes back.
func TestLearnedSurvivesSwaps(t *testing.T) {
	a, b, c := server("a", 1), server("b", 1), server("c", 1)
	l := newLab(t, learnSpec(a, b))
	l.teach("s")
	l.swap(learnSpec(c, a)) // a stands elsewhere now
	if !l.bound("s", "a") {
		t.Error("a stayed, and so do its sessions")
	}
	l.swap(learnSpec(c))
	l.swap(learnSpec(c, a))
	if l.bound("s", "a") {
		t.Error("a had left: its sessions are gone")
	}
	l.pick(of("s"))
	if l.bound("s", "a") || l.bound("s", "c") {
		t.Error("nor does an answer bring them back")
	}
	l.teach("t")
	again := c
	again.Incarnation++
	l.swap(learnSpec(again, a))
	if l.bound("t", "c") {
		t.Error("c was started again: its sessions are gone")
	}
}

// TestOldGroupTeachesTheNew: a request that began before a swap teaches too, but never somebody who left.
func TestOldGroupTeachesTheNew(t *testing.T) {
	a, b, c := server("a", 1), server("b", 1), server("c", 1)
	l := newLab(t, learnSpec(a, b, c))
	p, _ := l.open(nil)
	q, _ := l.open(nil)
	l.swap(learnSpec(a, c))
	for i, pass := range []*Pass{p, q} {
		pass.Learn(fmt.Append(nil, "s", i))
		pass.Header()
		pass.End(Succeeded)
	}
	if !l.bound("s0", "a") {
		t.Error("a is there")
	}
	if got := len(l.g.pins.sessions.at); got != 1 {
		t.Errorf("%d sessions, one of them of somebody who left", got)
	}
}
