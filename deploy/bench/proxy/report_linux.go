package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// rates are requests per CPU-second, round by round; NaN for a round that does not count.
func (c *cell) rates() []float64 {
	return c.each(func(r figures.Result) float64 { return r.PerCPUSecond() })
}

// each is a figure of every round; NaN for one that does not count.
func (c *cell) each(of func(figures.Result) float64) []float64 {
	out := make([]float64, len(c.rounds))
	for i, r := range c.rounds {
		if out[i] = of(r); c.errs[i] != nil || out[i] == 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

// trouble is how many rounds do not count, and why the first of them does not.
func (c *cell) trouble() (n int, first error) {
	for _, err := range c.errs {
		if err == nil {
			continue
		}
		if n++; first == nil {
			first = err
		}
	}
	return n, first
}

// report prints a block of lines for each row, and then the ratios of all.
func report(out io.Writer, list []*contender, todo []row, s sheet, reference string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range todo {
		fmt.Fprintf(w, "\n%s: %s\n", r.name, r.what)
		fmt.Fprintf(w, "  proxy\treq/CPU-s\tuser µs\tsystem µs\t/ %s\tlow–high\treq/s\tp99\tlongest\tcounted\n", reference)
		for _, c := range list {
			line(w, c, s.cell(r.name, c.name), s.cell(r.name, reference))
		}
	}
	fmt.Fprintf(w, "\nrequests per CPU-second / those of %s\n", reference)
	for _, c := range list {
		fmt.Fprintf(w, "\t%s %s", c.name, c.version)
	}
	fmt.Fprintln(w)
	for _, r := range todo {
		fmt.Fprint(w, r.name)
		for _, c := range list {
			ratio := figures.Summarise(figures.Ratios(s.cell(r.name, c.name).rates(), s.cell(r.name, reference).rates()))
			fmt.Fprintf(w, "\t%s", ratioText(ratio))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func line(w io.Writer, c *contender, own, reference *cell) {
	rate := figures.Summarise(own.rates())
	bad, first := own.trouble()
	if rate.N == 0 {
		fmt.Fprintf(w, "  %s\t%s\n", c.name, oneLine(first))
		return
	}
	median := func(of func(figures.Result) float64) float64 { return figures.Summarise(own.each(of)).Median }
	ratio := figures.Summarise(figures.Ratios(own.rates(), reference.rates()))
	fmt.Fprintf(w, "  %s\t%.0f\t%.1f\t%.1f\t%s\t%s\t%.0f\t%.2fms\t%.0fms\t%d/%d\n", c.name, rate.Median,
		median(func(r figures.Result) float64 { return micro(r.CPU.User.Nanoseconds(), r.Requests) }),
		median(func(r figures.Result) float64 { return micro(r.CPU.System.Nanoseconds(), r.Requests) }),
		ratioText(ratio), spreadText(ratio), median(figures.Result.PerSecond),
		median(func(r figures.Result) float64 { return r.P99.Seconds() * 1e3 }), figures.Summarise(own.each(func(r figures.Result) float64 { return r.Longest.Seconds() * 1e3 })).High,
		rate.N, len(own.rounds))
	if bad > 0 {
		fmt.Fprintf(w, "  \t%d not counted: %s\n", bad, oneLine(first))
	}
}

func micro(ns int64, requests int) float64 { return float64(ns) / 1e3 / float64(max(1, requests)) }

func ratioText(s figures.Summary) string {
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", s.Median)
}

func spreadText(s figures.Summary) string {
	if s.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f–%.2f", s.Low, s.High)
}

func oneLine(err error) string {
	if err == nil {
		return "too little processor time was used to say"
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
