package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	rounds    int
	warm      time.Duration
	window    time.Duration
	rows      *regexp.Regexp
	proxies   []string
	samples   string // file for benchstat; empty: none
	upstrand  string // program to measure instead of what is built here
	before    string // another build of ours, to compare with
	proxyCore string
	loadCores string
	keep      string // folder for profiles
}

var parts = map[string]func(context.Context, *bench) error{
	"table": table, "features": features, "latency": latency, "memory": memory, "profile": profile, "train": train,
}

const partNames = "table, features, latency, memory, profile, train"

func main() {
	s, what, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, s, what)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-proxy:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (s settings, what []string, err error) {
	f := flag.NewFlagSet("bench-proxy", flag.ContinueOnError)
	f.IntVar(&s.rounds, "rounds", 5, "rounds: each proxy gets one burst of each row in a round")
	f.DurationVar(&s.window, "window", 1500*time.Millisecond, "length of a burst: many short ones are better on a busy machine")
	f.DurationVar(&s.warm, "warm", 300*time.Millisecond, "time of each burst before it is counted")
	rows := f.String("rows", ".", "regular expression for the names of rows")
	proxies := f.String("proxies", "nginx,haproxy,caddy,reverseproxy,upstrand", "which to measure")
	f.StringVar(&s.samples, "out", "", "file for the figures of each burst, for benchstat")
	f.StringVar(&s.upstrand, "upstrand", "", "program to measure as upstrand; absent: it is built")
	f.StringVar(&s.before, "before", "", "another build of upstrand, measured beside it as \"before\"")
	first, last := cores()
	f.StringVar(&s.proxyCore, "proxy-core", last, "core of the proxies, as taskset -c takes it")
	f.StringVar(&s.loadCores, "load-cores", first, "cores of backend and load generator")
	f.StringVar(&s.keep, "profiles", "bin/profiles", "folder for profiles")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "bench-proxy [flags] [WHAT…]\n\nWHAT: %s (default table)\n\n", partNames)
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return s, nil, err
	}
	if s.rows, err = regexp.Compile(*rows); err != nil {
		return s, nil, fmt.Errorf("-rows: %w", err)
	}
	if s.rounds < 1 || s.window < 200*time.Millisecond || s.warm < 0 {
		return s, nil, fmt.Errorf("-rounds %d -window %v -warm %v: allowed: 1 round, 200ms and 0 or more", s.rounds, s.window, s.warm)
	}
	s.proxies = strings.Split(*proxies, ",")
	for _, name := range s.proxies {
		if makers[name] == nil {
			return s, nil, fmt.Errorf("-proxies %q: allowed: nginx, haproxy, caddy, reverseproxy, upstrand", name)
		}
	}
	if what = f.Args(); len(what) == 0 {
		what = []string{"table"}
	}
	for _, w := range what {
		if parts[w] == nil {
			return s, nil, fmt.Errorf("%q can't be measured: allowed: %s", w, partNames)
		}
	}
	return s, what, nil
}

func run(ctx context.Context, s settings, what []string) (err error) {
	b, err := newBench(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, w := range what {
		if err := parts[w](ctx, b); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted; everything is stopped")
			}
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	return nil
}
