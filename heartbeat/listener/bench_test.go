package listener

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/registry"
)

// noRecorder takes everything and does nothing, so that a benchmark measures reading and decoding.
type noRecorder struct{ applied chan int }

func (n noRecorder) OpenStream(context.Context, int32, string) (Stream, error) {
	return &noStream{n: n, next: -1}, nil
}

type noStream struct {
	n    noRecorder
	next int64
}

func (s *noStream) State() registry.StreamState { return registry.StreamState{NextOffset: s.next} }
func (s *noStream) Apply(_ context.Context, b registry.Batch) (registry.Result, error) {
	s.next = b.Next
	s.n.applied <- len(b.Records)
	return registry.Result{Applied: len(b.Records)}, nil
}
func (s *noStream) Restart(_ context.Context, offset int64, _ string) error {
	s.next = offset
	return nil
}
func (s *noStream) Adopt(context.Context, int) error { return nil }

// BenchmarkFromKafka reads, decodes and batches beats of 100,000 instances from an embedded broker on this machine into
// a recorder that does nothing. One iteration is one beat.
func BenchmarkFromKafka(b *testing.B) {
	for _, codec := range []kafka.Compression{0, kafka.Snappy} {
		b.Run(fmt.Sprintf("codec=%v", codec), func(b *testing.B) {
			br := startBroker(b, "", 0)
			br.create(b, 6)
			w := newSender(b, br.addr).w
			w.Compression = codec
			const chunk = 10000
			for sent := 0; sent < b.N; sent += chunk {
				msgs := make([]kafka.Message, 0, chunk)
				for i := sent; i < min(sent+chunk, b.N); i++ {
					msgs = append(msgs, fullBeat(i%100000, int64(i/100000+1)))
				}
				if err := w.WriteMessages(context.Background(), msgs...); err != nil {
					b.Fatal(err)
				}
			}
			rec := noRecorder{applied: make(chan int, 64)}
			cfg := scaled(br.addr, rec)
			cfg.PulseInterval, cfg.BatchTime, cfg.FetchWait = time.Second, 50*time.Millisecond, 250*time.Millisecond
			b.ReportAllocs()
			b.ResetTimer()
			l := startListener(b, cfg)
			for n := 0; n < b.N; {
				n += <-rec.applied
			}
			b.StopTimer()
			go func() {
				for range rec.applied {
				}
			}()
			l.stop(b)
			close(rec.applied)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "beats/s")
		})
	}
}

// fullBeat is a beat as a Go sender makes it, about 380 bytes.
func fullBeat(i int, seq int64) kafka.Message {
	id := fmt.Sprintf("pod-%d", i)
	return kafka.Message{Key: []byte("orders/" + id), Value: fmt.Appendf(nil,
		`{"service":"orders","id":%q,"incarnation":1795000000000,"seq":%d,"sent_at":"2026-11-30T12:00:00.123456Z","scheme":"http","ip":"10.%d.%d.%d","port":8080,"url":"/orders/","status":"up","weight":1,"zone":"a","version":"1.2.3","tags":["canary","eu"],"load":{"in_flight":3,"rps":120.5,"latency_ms":12.25},"resources":{"cpu":0.25,"memory":123456789},"interval":"10s"}`,
		id, seq, i>>16&255, i>>8&255, i&255)}
}
