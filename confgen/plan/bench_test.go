package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/registry"
)

// BenchmarkMake plans a canary over 1,000 services of 20 instances in two zones.
func BenchmarkMake(b *testing.B) {
	snap := registry.Snapshot{Declared: &registry.Declaration{}}
	for s := range 1000 {
		name := fmt.Sprintf("svc-%d", s)
		snap.Services = append(snap.Services, registry.Service{Name: name})
		snap.Claims = append(snap.Claims, registry.RouteClaim{Path: "/" + name, Service: name})
		for i := range 20 {
			n := len(snap.Instances)
			snap.Instances = append(snap.Instances, registry.Instance{DenseID: int64(n + 1), Service: name, ID: fmt.Sprint(i), Status: registry.StatusUp, Liveness: registry.Live,
				Attrs: registry.Attrs{Scheme: "http", IP: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), Port: 80, Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second, Zone: string(rune('a' + i%2)), Version: fmt.Sprint(i % 3)}})
		}
	}
	files := []registry.DeclaredFile{{Name: "main", Text: `upstream v2 { discover svc-1 version=2; }
upstream v1 { discover svc-1 version=1; }
upstrand canary { upstream v2; upstream v1; next_upstream_statuses 5xx; }
server { location /svc-1 { proxy_pass http://$upstrand_canary; } }
`}}
	for b.Loop() {
		if p := Make(snap, files); len(p.Faults) > 0 || len(p.Changes) != 4 {
			b.Fatal(p)
		}
	}
}
