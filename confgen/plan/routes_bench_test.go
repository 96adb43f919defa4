package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/declared"
	"github.com/upstrand/upstrand/registry"
)

// As many routes as may be declared, over a registry of many services: none may cost a look at each service.
func BenchmarkManyRoutes(b *testing.B) {
	snap := registry.Snapshot{Declared: &registry.Declaration{}}
	for i := range 5000 {
		snap.Services = append(snap.Services, registry.Service{Name: fmt.Sprint("svc", i)})
	}
	var text strings.Builder
	text.WriteString("server {\n")
	for i := range declared.MaxRoutes {
		fmt.Fprintf(&text, "location /%d { proxy_pass http://svc%d; }\n", i, i%5000)
	}
	text.WriteString("}\n")
	for b.Loop() {
		if p := Make(snap, []registry.DeclaredFile{{Name: "main", Text: text.String()}}); len(p.Changes) != declared.MaxRoutes {
			b.Fatalf("%d changes, %v", len(p.Changes), p.Faults)
		}
	}
}
