package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// latency sends requests at a fixed rate through each proxy and straight to the backend; what a proxy adds is the difference of their quantiles.
// The rate is the same for all: half of what the slowest of them serves.
func latency(ctx context.Context, b *bench) error {
	b.proxies = slices.DeleteFunc(slices.Clone(b.proxies), func(name string) bool { return name == "caddy" || name == "reverseproxy" })
	list, err := b.contenders(ctx)
	if err != nil {
		return err
	}
	defer stopAll(list)
	r := rows[1]
	lowest := 0.0
	for _, c := range list {
		res, err := b.burst(ctx, c, r)
		if err != nil {
			return fmt.Errorf("%s at saturation: %w", c.name, err)
		}
		if lowest == 0 || res.PerSecond() < lowest {
			lowest = res.PerSecond()
		}
	}
	rate := lowest / 2
	s := sheet{}
	for round := range b.rounds {
		for i := range len(list) + 1 {
			at := (i + round) % (len(list) + 1)
			name, args := "backend", r.arguments(b.origin, b.warm, 2*b.window, 0)
			if at > 0 {
				c := list[at-1]
				name, args = c.name, r.arguments(c.doors[plain], b.warm, 2*b.window, c.proc.Pid())
			}
			res, err := b.load(ctx, append(args, "-rate", strconv.FormatFloat(rate, 'f', 1, 64))...)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.cell(r.name, name).add(res, errors.Join(err, res.Err()))
		}
		fmt.Fprintf(b.progress(), "round %d of %d\n", round+1, b.rounds)
	}
	return b.reportLatency(list, s[r.name], rate)
}

func (b *bench) reportLatency(list []*contender, cells map[string]*cell, rate float64) error {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%.0f requests a second, 64 connections; µs, medians of %d rounds\n", rate, b.rounds)
	fmt.Fprintln(w, "\tp50\tp99\tp99.9\tadded p50\tadded p99\tadded p99.9\tcounted")
	quantiles := []func(figures.Result) float64{
		func(r figures.Result) float64 { return us(r.P50) }, func(r figures.Result) float64 { return us(r.P99) }, func(r figures.Result) float64 { return us(r.P999) },
	}
	for _, name := range append([]string{"backend"}, names(list)...) {
		c := cells[name]
		if n, first := c.trouble(); n == len(c.rounds) {
			fmt.Fprintf(w, "%s\t%s\n", name, oneLine(first))
			continue
		}
		fmt.Fprint(w, name)
		for _, q := range quantiles {
			fmt.Fprintf(w, "\t%.0f", figures.Summarise(c.each(q)).Median)
		}
		for _, q := range quantiles {
			if name == "backend" {
				fmt.Fprint(w, "\t")
				continue
			}
			fmt.Fprintf(w, "\t%.0f", figures.Summarise(differences(c.each(q), cells["backend"].each(q))).Median)
		}
		fmt.Fprintf(w, "\t%d/%d\n", figures.Summarise(c.each(quantiles[0])).N, len(c.rounds))
	}
	return w.Flush()
}

func differences(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func names(list []*contender) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.name)
	}
	return out
}
