package forward

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() int64 { return time.Now().UnixNano() }
		b := NewBudget(clock, 0.2, 3, 500*time.Millisecond)
		take := func() (ok, held bool, took time.Duration) {
			began := time.Now()
			ok, held = b.Take(t.Context())
			return ok, held, time.Since(began)
		}
		for range 20 {
			b.Request(clock())
		}
		for i := range 4 {
			if ok, held, _ := take(); !ok || held {
				t.Fatalf("retry %d of 20 requests: %v, %v; want it from the share", i, ok, held)
			}
		}
		for i := range 3 {
			if ok, held, _ := take(); !ok || !held {
				t.Fatalf("retry %d beyond the share: %v, %v; want one of the three", i, ok, held)
			}
		}
		if ok, _, took := take(); ok || took != 500*time.Millisecond {
			t.Fatalf("beyond both: %v after %v, want a refusal after the wait", ok, took)
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			b.Release()
		}()
		if ok, held, took := take(); !ok || !held || took != 100*time.Millisecond {
			t.Fatalf("a freed one: %v, %v after %v, want it after 100 ms", ok, held, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if ok, _ := b.Take(ctx); ok {
			t.Fatal("the client is gone, yet its retry got a slot")
		}
		for range 20 { // a share that nobody takes is over with the window
			b.Request(clock())
		}
		time.Sleep(11 * time.Second)
		for range 5 {
			b.Request(clock())
		}
		if ok, held, _ := take(); !ok || held {
			t.Fatal("after the window the share counts the new requests")
		}
		if b.takeShare() {
			t.Fatal("a second retry of five requests is above the share")
		}
	})
}

func TestNoBudgetAllowsEverything(t *testing.T) {
	var b *Budget
	b.Request(1)
	if ok, held := b.Take(t.Context()); !ok || held {
		t.Error("a nil budget refuses")
	}
}
