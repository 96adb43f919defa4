package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/heartbeat"
)

const perService = 500

// beats lets every instance join, then measures how fast a listener works off a backlog of further beats of all of them.
func beats(ctx context.Context, w *rig.World, s settings) error {
	listener, err := w.Listener(ctx, "listener", "--log-level", "info")
	if err != nil {
		return err
	}
	if _, err := w.Registry(ctx, "registry"); err != nil {
		return err
	}
	began := time.Now()
	if err := produceRound(ctx, w, s, 1); err != nil {
		return err
	}
	if err := applied(ctx, listener, s.instances); err != nil {
		return err
	}
	fmt.Printf("joins: %d new instances in %v (%.0f/s), from the first beat written to the last row committed\n",
		s.instances, time.Since(began).Round(time.Millisecond), float64(s.instances)/time.Since(began).Seconds())
	// A listener that is stopped lets the backlog grow; it starts with empty caches and an empty index, as after any restart.
	if err := listener.Term(20 * time.Second); err != nil {
		return err
	}
	for round := range s.rounds {
		if err := produceRound(ctx, w, s, int64(round+2)); err != nil {
			return err
		}
	}
	if err := listener.Start(ctx); err != nil {
		return err
	}
	return drain(ctx, listener, s.instances*s.rounds)
}

// drain watches the counter of applied beats from the first beat on and prints the rate of the whole and of its best and worst second.
func drain(ctx context.Context, listener *rig.Role, want int) error {
	var begin, last time.Time
	var at, first float64
	best, worst := 0.0, 0.0
	for at < float64(want) {
		n, err := listener.Metric(ctx, "upstrand_listener_applied_total")
		if err != nil && !begin.IsZero() { // before that the role may still be coming up
			return err
		}
		now := time.Now()
		switch {
		case n == 0:
		case begin.IsZero():
			begin, last, at, first = now, now, n, n
		case now.Sub(last) >= time.Second || n >= float64(want):
			rate := (n - at) / now.Sub(last).Seconds()
			if now.Sub(last) >= time.Second {
				best = max(best, rate)
				if worst == 0 || rate < worst {
					worst = rate
				}
			}
			last, at = now, n
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	took := last.Sub(begin)
	fmt.Printf("beats: %.0f beats/s from Kafka to committed rows (%d beats in %v; best second %.0f, worst %.0f)\n",
		(at-first)/took.Seconds(), int(at-first), took.Round(time.Millisecond), best, worst)
	return nil
}

func applied(ctx context.Context, listener *rig.Role, want int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return rig.Until(ctx, func() error {
		n, err := listener.Metric(ctx, "upstrand_listener_applied_total")
		if err == nil && int(n) < want {
			err = fmt.Errorf("%d of %d beats are applied", int(n), want)
		}
		return err
	})
}

// produceRound writes one beat of every instance.
func produceRound(ctx context.Context, w *rig.World, s settings, seq int64) error {
	t := w.Kafka.Transport()
	defer t.CloseIdleConnections()
	out := &kafka.Writer{Addr: kafka.TCP(w.Kafka.Addr), Topic: rig.TopicHeartbeat, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: 5 * time.Millisecond, BatchSize: 2000, Transport: t, Compression: kafka.Snappy}
	msgs := make([]kafka.Message, 0, 20_000)
	for n := range s.instances {
		b := heartbeat.Beat{Service: fmt.Sprintf("service-%03d", n/perService), ID: fmt.Sprintf("instance-%06d", n), Incarnation: 1_700_000_000_000, Seq: seq,
			SentAt: time.Now(), IP: fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255), Port: 8080, URL: fmt.Sprintf("/service-%03d/", n/perService),
			Weight: 1, Zone: "abc"[n%3 : n%3+1], Version: "1.2.3", Load: &heartbeat.Load{InFlight: n % 50, RPS: float64(n % 900), LatencyMS: 12},
			// The measured instances beat once; nobody may go stale meanwhile.
			StaleAfter: heartbeat.Duration(time.Hour)}
		value, err := b.Encode()
		if err != nil {
			return errors.Join(err, out.Close())
		}
		msgs = append(msgs, kafka.Message{Key: b.Key(), Value: value})
		if len(msgs) == cap(msgs) || n == s.instances-1 {
			if err := out.WriteMessages(ctx, msgs...); err != nil {
				return errors.Join(fmt.Errorf("produce: %w", err), out.Close())
			}
			msgs = msgs[:0]
		}
	}
	return out.Close()
}

// poll lets a confgen lead over the rows of beats and reads what a poll that finds nothing costs it.
func poll(ctx context.Context, w *rig.World) error {
	confgen, err := w.Confgen(ctx, "confgen", "--poll", "100ms", "--log-level", "info")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := confgen.AwaitReady(ctx, 2*time.Minute); err != nil {
		return err
	}
	leading, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := rig.Until(leading, func() error {
		n, err := confgen.Metric(ctx, "upstrand_confgen_records")
		if err == nil && n == 0 {
			err = errors.New("nothing is published yet")
		}
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("confgen: leads and has published the first version %v after its start\n", time.Since(began).Round(time.Millisecond))
	sum0, count0, err := pollCost(ctx, confgen)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Second):
	}
	sum, count, err := pollCost(ctx, confgen)
	if err != nil {
		return err
	}
	fmt.Printf("poll: %.2f ms for a poll that finds nothing (mean of %.0f)\n", (sum-sum0)/(count-count0)*1000, count-count0)
	return errors.Join(confgen.Kill())
}

func pollCost(ctx context.Context, confgen *rig.Role) (sum, count float64, err error) {
	if sum, err = confgen.Metric(ctx, "upstrand_confgen_poll_seconds_sum"); err != nil {
		return 0, 0, err
	}
	count, err = confgen.Metric(ctx, "upstrand_confgen_poll_seconds_count")
	return sum, count, err
}
