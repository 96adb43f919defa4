package confgen

import (
	"fmt"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

func manyInstances(services, each int) registry.Snapshot {
	var s registry.Snapshot
	for i := range services {
		name := fmt.Sprintf("svc-%04d", i)
		s.Services = append(s.Services, registry.Service{Name: name})
		s.Claims = append(s.Claims, registry.RouteClaim{Path: "/" + name, Service: name})
		for k := range each {
			n := i*each + k
			s.Instances = append(s.Instances, registry.Instance{DenseID: int64(n + 1), Service: name, ID: fmt.Sprintf("node-%d", k), Incarnation: 1700000000000,
				Status: registry.StatusUp, Liveness: registry.Live,
				Attrs: registry.Attrs{Scheme: "http", IP: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), Port: 8080, Weight: 1, MaxFails: 1,
					FailTimeout: 10 * time.Second, Zone: "zone-" + string(rune('a'+k%3))}})
		}
	}
	return s
}

// BenchmarkJoin is what the leader does for one changed instance among 10,000: apply, derive, encode, digest.
func BenchmarkJoin(b *testing.B) {
	for _, shape := range []struct{ services, each int }{{100, 100}, {1, 10_000}} {
		b.Run(fmt.Sprintf("%dx%d", shape.services, shape.each), func(b *testing.B) {
			snap := manyInstances(shape.services, shape.each)
			book := newBook(nil)
			book.load(snap)
			book.rebuild()
			in := snap.Instances[7]
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				in.Attrs.Weight = 2 + i%2
				book.apply(registry.Snapshot{Instances: []registry.Instance{in}})
				if changed := book.rebuild(); len(changed) != 1 {
					b.Fatalf("%d records changed", len(changed))
				}
				book.causes.take()
			}
		})
	}
}

// BenchmarkBuild is the whole from nothing, as at a change of leaders.
func BenchmarkBuild(b *testing.B) {
	snap := manyInstances(100, 100)
	b.ReportAllocs()
	for b.Loop() {
		out := Build(Input{Instances: snap.Instances, Services: snap.Services, Claims: snap.Claims})
		if _, err := topology.Encode(out.Config); err != nil {
			b.Fatal(err)
		}
	}
}
