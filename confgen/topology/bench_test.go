package topology

import (
	"fmt"
	"testing"
)

// BenchmarkJoin is what an agent does for one join among 10,000 instances: 100 services of 100, or one of 10,000.
func BenchmarkJoin(b *testing.B) {
	for _, shape := range []struct {
		name               string
		services, perEvery int
	}{{"100x100", 100, 100}, {"1x10000", 1, 10_000}} {
		b.Run(shape.name, func(b *testing.B) {
			r := NewReplica()
			w := &writer{pair: Pair{1, 1}, content: map[string][]byte{}}
			put := func(s Service, parts int) {
				rs, err := EncodeService(s, parts)
				if err != nil {
					b.Fatal(err)
				}
				for _, rec := range rs {
					if string(w.content[rec.Key]) != string(rec.Value) {
						feed(r, w.put(rec.Key, rec.Value))
					}
				}
			}
			var first Service
			for i := range shape.services {
				s := bigService(shape.perEvery)
				s.Name = fmt.Sprintf("svc-%03d", i)
				if i == 0 {
					first = s
				}
				put(s, 0)
				rec, err := EncodeUpstream(Upstream{Name: s.Name, Origin: Derived, Directives: []Directive{{"discover", s.Name}}})
				if err != nil {
					b.Fatal(err)
				}
				feed(r, w.put(rec.Key, rec.Value))
			}
			x := NewExpander(ExpandOptions{})
			apply := func(m Message) {
				topo, err := feed(r, m)
				if err != nil {
					b.Fatal(err)
				}
				x.Expand(topo.Config)
			}
			apply(w.commit(b))
			// Two forms of the one changed record and its commit, to go to and fro between.
			var forms [2][]Message
			for i := range forms {
				first.Instances[7].Weight = i + 2
				before := len(w.content)
				rs, err := EncodeService(first, 8)
				if err != nil {
					b.Fatal(err)
				}
				for _, rec := range rs {
					if string(w.content[rec.Key]) != string(rec.Value) {
						forms[i] = append(forms[i], w.put(rec.Key, rec.Value))
					}
				}
				if len(w.content) != before || len(forms[i]) != 1 {
					b.Fatalf("%d records changed", len(forms[i]))
				}
				forms[i] = append(forms[i], w.commit(b))
				for _, m := range forms[i][:1] {
					feed(r, m)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				f := forms[i%2]
				feed(r, f[0])
				apply(f[1])
			}
		})
	}
}
