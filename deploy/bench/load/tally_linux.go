package main

import (
	"fmt"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// tally counts what the generator sees.
type tally struct {
	requests int // in the window
	longest  time.Duration
	failed   int
	stalled  int
	fault    string
	latency  figures.Latency // in the window
}

// answered counts an answer that took d.
func (t *tally) answered(d time.Duration, inWindow bool) {
	t.longest = max(t.longest, d)
	if d >= figures.MaxWait {
		t.stalled++
	}
	if inWindow {
		t.requests++
		t.latency.Add(d)
	}
}

func (t *tally) fail(err error) {
	if t.failed++; t.fault == "" {
		t.fault = err.Error()
	}
}

// window is the time in which requests are counted, with the processor time that the proxy used in it.
type window struct {
	pid        int
	base       time.Time
	began      time.Duration // since base
	before     figures.CPU
	took       time.Duration
	used       figures.CPU
	unreadable error
}

func (w *window) now() time.Duration { return time.Since(w.base) }

func (w *window) begin() {
	w.before = w.cpu()
	w.began = w.now()
}

func (w *window) end() {
	w.took = w.now() - w.began
	w.used = w.cpu().Sub(w.before)
}

func (w *window) cpu() figures.CPU {
	if w.pid == 0 {
		return figures.CPU{}
	}
	c, err := figures.CPUOf(w.pid)
	if err != nil && w.unreadable == nil {
		w.unreadable = fmt.Errorf("processor time of the proxy (has it ended?): %w", err)
	}
	return c
}

func (w *window) result(t *tally) (figures.Result, error) {
	if w.unreadable != nil {
		return figures.Result{}, w.unreadable
	}
	return figures.Result{
		Requests: t.requests, Elapsed: w.took, CPU: w.used, Longest: t.longest, Failed: t.failed, Stalled: t.stalled, Fault: t.fault,
		P50: t.latency.Quantile(0.5), P99: t.latency.Quantile(0.99), P999: t.latency.Quantile(0.999),
	}, nil
}
