package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upstrand/upstrand/deploy/wire"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "differ:", err)
		os.Exit(1)
	}
}

// hunt is one run.
type hunt struct {
	seed   uint64
	next   atomic.Uint64
	both   atomic.Uint64 // payloads of which both forwarded something
	sent   atomic.Uint64
	once   atomic.Uint64 // differences that did not show again
	mu     sync.Mutex
	kinds  map[string]int // findings by what they are
	wanted int
}

func run() error {
	limit := flag.Duration("time", 10*time.Second, "how long")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "what the payloads are made from")
	from := flag.Uint64("from", 0, "the first number")
	only := flag.Int64("only", -1, "send this number alone, and say what came of it")
	path := flag.String("nginx", "/usr/sbin/nginx", "the program to compare with")
	workers := flag.Int("workers", 24, "senders at the same time")
	most := flag.Int("findings", 20, "end after so many different ones")
	flag.Parse()
	if *only >= 0 {
		*workers = 1
	}
	x, err := startNginx(*path, *workers)
	if err != nil {
		return err
	}
	defer x.close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	h := &hunt{seed: *seed, kinds: map[string]int{}, wanted: *most}
	h.next.Store(*from)
	fmt.Printf("differ: seed %d, %v\n", *seed, *limit)
	var hunting sync.WaitGroup
	var errs []error
	for i := range *workers {
		l := &lanes{nginx: x.lanes[i]}
		if err := ours(l); err != nil {
			errs = append(errs, err)
			break
		}
		defer l.file.Close()
		defer l.published.Close()
		if *only >= 0 {
			return show(l, payload(*seed, uint64(*only)))
		}
		hunting.Go(func() { h.work(ctx, cancel, l) })
	}
	hunting.Wait()
	fmt.Printf("differ: %d payloads, %d of them forwarded by both, %d kinds of findings, %d differences that did not show again\n", h.sent.Load(), h.both.Load(), len(h.kinds), h.once.Load())
	if len(h.kinds) > 0 {
		errs = append(errs, fmt.Errorf("%d kinds of findings", len(h.kinds)))
	}
	if h.sent.Load() > 200 && h.both.Load()*20 < h.sent.Load() {
		errs = append(errs, errors.New("hardly anything was forwarded: this compares nothing"))
	}
	return errors.Join(errs...)
}

func (h *hunt) work(ctx context.Context, end func(), l *lanes) {
	for ctx.Err() == nil {
		number := h.next.Add(1) - 1
		text := payload(h.seed, number)
		nginx, found := look(l, text+sentinel)
		h.sent.Add(1)
		if len(nginx.requests) > 0 {
			h.both.Add(1)
		}
		if found == nil {
			continue
		}
		if !lasting(l, text+sentinel, kind(found)) {
			h.once.Add(1)
			continue
		}
		h.report(ctx, l, number, text, found, end)
	}
}

// lasting tells whether a finding shows again and again: what shows in between is a machine that was too busy.
func lasting(l *lanes, text, what string) bool {
	for range 3 {
		time.Sleep(2 * time.Second)
		if _, again := look(l, text); again == nil || kind(again) != what {
			return false
		}
	}
	return true
}

// look sends a text everywhere and gives what is wrong.
func look(l *lanes, text string) (nginx outcome, found []string) {
	nginx, err := send(l.nginx, text)
	if err != nil {
		return nginx, []string{err.Error()}
	}
	for _, side := range []struct {
		name string
		lane *wire.Lane
	}{{"file", l.file}, {"published", l.published}} {
		o, err := send(side.lane, text)
		if err != nil {
			return nginx, append(found, err.Error())
		}
		for _, d := range differences(text, nginx, o) {
			found = append(found, side.name+": "+d)
		}
	}
	return nginx, found
}

// kind is a finding without its particulars.
func kind(found []string) string {
	text, _, _ := strings.Cut(found[0], "\"")
	text, _, _ = strings.Cut(text, "refused by nginx:")
	return text
}

func (h *hunt) report(ctx context.Context, l *lanes, number uint64, text string, found []string, end func()) {
	small := minimise(text, 300, func(less string) bool {
		if ctx.Err() != nil {
			return false
		}
		_, f := look(l, less+sentinel)
		return f != nil && kind(f) == kind(found)
	})
	_, last := look(l, small+sentinel)
	if last == nil {
		small, last = text, found
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	k := kind(last)
	if h.kinds[k]++; h.kinds[k] > 5 {
		return
	}
	fmt.Printf("\nfinding: -seed %d -only %d\n  %q\n", h.seed, number, small)
	for _, d := range last {
		fmt.Printf("  %.400s\n", d)
	}
	if len(h.kinds) >= h.wanted {
		end()
	}
}

// show sends one payload and prints all that came of it.
func show(l *lanes, text string) error {
	fmt.Printf("%q\n", text)
	for _, side := range []struct {
		name string
		lane *wire.Lane
	}{{"nginx", l.nginx}, {"file", l.file}, {"published", l.published}} {
		o, err := send(side.lane, text+sentinel)
		if err != nil {
			return err
		}
		fmt.Printf("%s: answers %v, open %v, faults %q\n", side.name, o.answers, o.open, o.faults)
		for _, m := range o.requests {
			fmt.Printf("  %q %q %q %q\n", m.Line, m.Fields, m.Body, m.Faults)
		}
	}
	_, found := look(l, text+sentinel)
	for _, d := range found {
		fmt.Println(d)
	}
	return nil
}
