package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// calls counts system calls per request of us and, where it is there, of nginx, with perf, which hardly slows them.
func (b *bench) calls(ctx context.Context, own *contender, todo []row) error {
	if _, err := exec.LookPath("perf"); err != nil {
		fmt.Fprintln(b.out, "\nsystem calls are not counted: perf is not there: apt-get install --no-install-recommends linux-perf")
		return nil
	}
	list := []*contender{own}
	if other, err := makers["nginx"](ctx, b); err == nil {
		defer other.stop()
		list = append(list, other)
	}
	for _, r := range todo {
		per := map[string]map[string]float64{}
		for _, c := range list {
			counts, err := b.callsOf(ctx, c, r)
			if err != nil {
				fmt.Fprintf(b.out, "\nsystem calls of %s are not counted: %v\n", c.name, err)
				continue
			}
			per[c.name] = counts
		}
		if err := b.reportCalls(r, list, per); err != nil {
			return err
		}
	}
	return nil
}

// callsOf runs perf around a burst without a warm-up, so that both count the same requests.
func (b *bench) callsOf(ctx context.Context, c *contender, r row) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "perf", "stat", "-x", ";", "-e", "syscalls:sys_enter_*", "-p", strconv.Itoa(c.proc.Pid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said // where perf stat prints
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	time.Sleep(time.Second) // it opens hundreds of counters for each thread, and does not say when it is through
	res, err := b.load(ctx, r.arguments(c.doors[r.door], 0, b.window, c.proc.Pid())...)
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait() // it ends by the signal
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return nil, err
	}
	counts := parsePerf(said.String())
	if len(counts) == 0 {
		return nil, fmt.Errorf("perf stat says: %s", firstLines(said.String(), 3))
	}
	for name := range counts {
		counts[name] /= float64(res.Requests)
	}
	return counts, nil
}

// parsePerf reads lines as "123;;syscalls:sys_enter_read;…" and leaves out what did not happen.
func parsePerf(text string) map[string]float64 {
	counts := map[string]float64{}
	for line := range strings.Lines(text) {
		f := strings.Split(line, ";")
		if len(f) < 3 {
			continue
		}
		n, err := strconv.ParseFloat(f[0], 64)
		name, ok := strings.CutPrefix(f[2], "syscalls:sys_enter_")
		if err == nil && ok && n > 0 {
			counts[name] += n
		}
	}
	return counts
}

func (b *bench) reportCalls(r row, list []*contender, per map[string]map[string]float64) error {
	all := map[string]float64{}
	for _, counts := range per {
		for name, n := range counts {
			all[name] = max(all[name], n)
		}
	}
	sorted := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return int(1e6 * (all[b] - all[a])) })
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nsystem calls per request, %s", r.what)
	for _, c := range list {
		fmt.Fprintf(w, "\t%s", c.name)
	}
	fmt.Fprintln(w)
	for _, name := range sorted {
		if all[name] < 0.001 {
			continue
		}
		fmt.Fprint(w, name)
		for _, c := range list {
			fmt.Fprintf(w, "\t%.3f", per[c.name][name])
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
