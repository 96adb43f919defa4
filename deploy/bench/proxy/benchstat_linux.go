package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

// progress is where one is told how far it is.
func (b *bench) progress() io.Writer { return os.Stderr }

// benchstat writes each burst that counts in the format of Go's benchmarks, so that benchstat -col /proxy, or two files, can be compared.
func (b *bench) benchstat(list []*contender, todo []row, s sheet) (err error) {
	if b.samples == "" {
		return nil
	}
	f, err := os.Create(b.samples)
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	writeBenchstat(f, list, todo, s)
	return f.Close()
}

func writeBenchstat(w io.Writer, list []*contender, todo []row, s sheet) {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/upstrand/upstrand/deploy/bench/proxy\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range todo {
		for _, c := range list {
			cell := s.cell(r.name, c.name)
			for i, res := range cell.rounds {
				if cell.errs[i] != nil || res.PerCPUSecond() == 0 {
					continue
				}
				fmt.Fprintf(w, "BenchmarkProxy/row=%s/proxy=%s\t%d\t%d cpu-ns/op\t%.0f req/cpu-s\t%d p99-ns\n",
					r.name, c.name, res.Requests, res.Cost().Nanoseconds(), res.PerCPUSecond(), res.P99.Nanoseconds())
			}
		}
	}
}
