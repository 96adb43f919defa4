package registry

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
)

// fleet is n instances of 100 services whose beats are made in turn.
type fleet struct {
	beats []Sighting
	at    int
	seq   int64
}

func newFleet(from, n int) *fleet {
	f := &fleet{seq: 1}
	for i := from; i < from+n; i++ {
		f.beats = append(f.beats, Sighting{
			Service: fmt.Sprintf("service-%02d", i%100), ID: fmt.Sprintf("node-%06d", i), Incarnation: 1_700_000_000_000, Seq: 1,
			SentAt: 1_700_000_000_000_000, ReceivedAt: 1_700_000_000_002_000, Status: StatusUp,
			Attrs: Attrs{Scheme: "http", IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Port: 8080,
				URL: fmt.Sprintf("/service-%02d/", i%100), Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second,
				Zone: "a", Version: "1.2.3", Tags: []string{"blue"}},
			Load:     Load{InFlight: 3, RPS: 120.5, LatencyMS: 4.2, CPU: 0.31, Memory: 300 << 20},
			Interval: 10 * time.Second, StaleAfter: 30 * time.Second,
		})
	}
	return f
}

// batch is the next n beats, as a listener hands them over: fresh values, strings shared with those before.
func (f *fleet) batch(from int64, n int) Batch {
	b := Batch{From: from, Next: from + int64(n), LogEnd: from + int64(n), CaughtUp: true, Records: make([]Record, n)}
	sightings := make([]Sighting, n)
	for i := range n {
		sightings[i] = f.beats[f.at]
		sightings[i].Seq = f.seq
		b.Records[i] = Record{Offset: from + int64(i), Sighting: &sightings[i]}
		if f.at++; f.at == len(f.beats) {
			f.at, f.seq = 0, f.seq+1
		}
	}
	return b
}

const benchBatch = 2000

func benchStore(b *testing.B, open func(testing.TB) *sqlx.DB, d Dialect) *Store {
	b.Helper()
	db := open(b)
	s, err := Open(db, d, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// join brings a whole fleet in.
func (f *fleet) join(b *testing.B, st *Stream) {
	b.Helper()
	for n := 0; n < len(f.beats); n += benchBatch {
		apply(b, st, f.batch(st.State().NextOffset, min(benchBatch, len(f.beats)-n)))
	}
}

func apply(b *testing.B, st *Stream, batch Batch) {
	res, err := st.Apply(context.Background(), batch)
	if err != nil {
		b.Error(err)
		return
	}
	if res.Applied != len(batch.Records) {
		b.Errorf("applied %d of %d: %v", res.Applied, len(batch.Records), res.Ignored)
	}
}

func openAt0(b *testing.B, s *Store, part int32) *Stream {
	b.Helper()
	st, err := s.OpenStream(context.Background(), part, "bench")
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Restart(context.Background(), 0, ""); err != nil {
		b.Fatal(err)
	}
	return st
}

// BenchmarkApplySteady: batches of 2000 steady beats of 100,000 instances, spread over 1 or 4 streams.
func BenchmarkApplySteady(b *testing.B) {
	for _, back := range backends {
		for _, streams := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/streams=%d", back.name, streams), func(b *testing.B) {
				s := benchStore(b, back.open, back.dialect)
				var sts []*Stream
				var fleets []*fleet
				for i := range streams {
					st, f := openAt0(b, s, int32(i)), newFleet(i*100_000/streams, 100_000/streams)
					f.join(b, st)
					sts, fleets = append(sts, st), append(fleets, f)
				}
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for i := range streams {
					wg.Go(func() {
						for range (b.N + streams - 1) / streams {
							apply(b, sts[i], fleets[i].batch(sts[i].State().NextOffset, benchBatch))
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "beats/s")
			})
		}
	}
}

// BenchmarkApplyJoin: batches of 2000 first beats.
func BenchmarkApplyJoin(b *testing.B) {
	for _, back := range backends {
		b.Run(back.name, func(b *testing.B) {
			s := benchStore(b, back.open, back.dialect)
			st := openAt0(b, s, 0)
			f := newFleet(0, b.N*benchBatch)
			b.ResetTimer()
			f.join(b, st)
			b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "joins/s")
		})
	}
}

// BenchmarkAt100k: what others ask of a registry of 100,000 instances, and what a death costs in it.
func BenchmarkAt100k(b *testing.B) {
	for _, back := range backends {
		b.Run(back.name, func(b *testing.B) {
			s := benchStore(b, back.open, back.dialect)
			st, ctx := openAt0(b, s, 0), context.Background()
			newFleet(0, 100_000).join(b, st)
			rev, err := s.Revision(ctx)
			if err != nil {
				b.Fatal(err)
			}
			run := func(name string, fn func() error) {
				b.Run(name, func(b *testing.B) {
					for range b.N {
						if err := fn(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			run("poll/revision", func() error { _, err := s.Revision(ctx); return err })
			run("poll/changes", func() error { _, err := s.Changes(ctx, rev); return err })
			run("snapshot", func() error { _, err := s.Snapshot(ctx); return err })
			run("open", func() error { _, err := s.OpenStream(ctx, 0, "bench"); return err })
			run("guard count", func() error {
				return s.read(ctx, func(tx *sqlx.Tx) error { _, err := s.tallies(ctx, tx); return err })
			})
			run("index scan", func() error { st.index.overdue(1, 1000, st.plan.seenAt); return nil })
		})
	}
}
