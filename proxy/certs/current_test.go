package certs

import (
	"testing"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestCurrent: what can't be used on disk shows until it is replaced, or put back.
func TestCurrent(t *testing.T) {
	ca, dir, s := certstest.New(t, "ca"), t.TempDir(), &Store{}
	one := ca.Leaf([]string{"one"})
	cert, key := certstest.Write(t, dir, "a", one)
	if _, err := s.Server(Settings{Pairs: []Pair{{cert, key}}}, false); err != nil {
		t.Fatal(err)
	}
	if !s.Current() {
		t.Error("just loaded")
	}
	certstest.Put(t, cert, []byte("no certificate"))
	if s.Look(true); s.Current() {
		t.Error("a broken file")
	}
	if s.Look(false); s.Current() {
		t.Error("a broken file that stays")
	}
	certstest.Write(t, dir, "a", ca.Leaf([]string{"two"}))
	if s.Look(true); !s.Current() {
		t.Error("replaced")
	}
}
