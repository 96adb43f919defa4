package confgen

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/registry"
)

const declaredPool = "upstream pool { server 10.9.0.1:80; } upstream v2 { discover orders version=2; }\n"

func TestWhatIsDeclaredIsPublishedAsAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		p := w.start()
		defer p.end()
		settle(time.Second)
		w.db.declare("main", declaredPool+"server { location /orders { proxy_pass http://v2; } }")
		settle(200 * time.Millisecond)
		w.converged()
		v := w.db.newest()
		if v.Version != 2 || v.Cause != "declared topology: main declared by ops (revision 1)" || v.Changed != 3 || v.Revision != w.db.revision {
			t.Errorf("version %+v", v)
		}
		if !slices.Contains(w.db.kinds(), registry.EventDeclaredWins) {
			t.Errorf("events %v", w.db.kinds())
		}
		// A file that says the same is no version; one that goes is.
		w.db.declare("main", "# the same\n"+declaredPool+"server { location /orders { proxy_pass http://v2; } }")
		settle(time.Second)
		if v := w.db.newest(); v.Version != 2 {
			t.Errorf("version %+v", v)
		}
		w.db.declare("main", "")
		settle(200 * time.Millisecond)
		w.converged()
		if v := w.db.newest(); v.Version != 3 || v.Cause != "declared topology: main deleted by ops (revision 3)" {
			t.Errorf("version %+v", v)
		}
	})
}

// The next leader reads what is declared, tells no false cause, and keeps the last good one when it can't be read.
func TestAnotherLeaderKeepsWhatIsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.join("orders/a1")
		w.db.declare("main", declaredPool)
		a := w.start()
		settle(time.Second)
		a.end()
		w.db.join("orders/a2")
		b := w.start()
		settle(time.Second)
		w.converged()
		if v := w.db.newest(); v.Cause != "orders/a2 joined" {
			t.Errorf("version %+v", v)
		}
		w.db.declare("main", "upstream pool { nonsense; }")
		settle(time.Second)
		last := w.db.newest()
		if last.Version != 2 {
			t.Errorf("a declared topology that can't be read made version %+v", last)
		}
		b.end()
		c := w.start() // which has never read it
		defer c.end()
		settle(time.Second)
		w.db.join("orders/a3")
		settle(time.Second)
		if v := w.db.newest(); v.Cause != "orders/a3 joined" || v.Changed != 1 {
			t.Errorf("version %+v", v)
		}
		refused := 0
		for _, e := range w.db.events {
			if e.Kind == registry.EventDeclarationBad && strings.Contains(e.Cause, "main:1: nonsense") {
				refused++
			}
		}
		if refused != 2 || c.g.Ready() != nil { // each process tells once
			t.Errorf("told %d times; ready: %v", refused, c.g.Ready())
		}
		w.db.declare("main", declaredPool+"upstream more { server 10.9.0.2:80; }")
		settle(time.Second)
		w.converged()
		if v := w.db.newest(); v.Cause != "declared topology: main declared by ops (revision 3)" || v.Changed != 1 {
			t.Errorf("version %+v", v)
		}
	})
}
