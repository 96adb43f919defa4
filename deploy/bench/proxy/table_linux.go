package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// cell is what one proxy did in one row, round by round.
type cell struct {
	rounds []figures.Result
	errs   []error // of each round; nil: it counts
}

func (c *cell) add(r figures.Result, err error) {
	c.rounds, c.errs = append(c.rounds, r), append(c.errs, err)
}

// sheet is the cells by row and proxy.
type sheet map[string]map[string]*cell

func (s sheet) cell(row, proxy string) *cell {
	if s[row] == nil {
		s[row] = map[string]*cell{}
	}
	if s[row][proxy] == nil {
		s[row][proxy] = &cell{}
	}
	return s[row][proxy]
}

// table is the comparison with the other proxies.
func table(ctx context.Context, b *bench) error {
	list, err := b.contenders(ctx)
	if err != nil {
		return err
	}
	defer stopAll(list)
	todo := chosen(rows, b.rows)
	if len(todo) == 0 {
		return fmt.Errorf("-rows %q fits no row", b.rows)
	}
	s, err := b.measure(ctx, list, todo)
	if err != nil {
		return err
	}
	reference := "nginx"
	if !slices.ContainsFunc(list, func(c *contender) bool { return c.name == reference }) {
		reference = list[0].name
	}
	if err := report(b.out, list, todo, s, reference); err != nil {
		return err
	}
	return b.benchstat(list, todo, s)
}

// contenders starts what is asked for. What is not there is said and left out.
func (b *bench) contenders(ctx context.Context) (list []*contender, err error) {
	defer func() {
		if err != nil {
			stopAll(list)
		}
	}()
	for _, name := range b.proxies {
		c, err := makers[name](ctx, b)
		var missing errMissing
		if errors.As(err, &missing) {
			fmt.Fprintf(b.out, "left out: %v\n", err)
			continue
		}
		if err != nil {
			return list, err
		}
		list = append(list, c)
	}
	if b.before != "" {
		c, err := upstrand(ctx, b, variant{name: "before", program: b.before})
		if err != nil {
			return list, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return list, errors.New("no proxy is left to be measured")
	}
	return list, nil
}

func stopAll(list []*contender) {
	for _, c := range list {
		if c != nil {
			c.stop()
		}
	}
}

// measure gives each proxy its burst of each row in each round. Who begins changes from round to round.
func (b *bench) measure(ctx context.Context, list []*contender, todo []row) (sheet, error) {
	s := sheet{}
	began := time.Now()
	for round := range b.rounds {
		for _, r := range todo {
			for i := range list {
				c := list[(i+round)%len(list)]
				s.cell(r.name, c.name).add(b.burst(ctx, c, r))
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
			}
		}
		fmt.Fprintf(b.progress(), "round %d of %d, %v\n", round+1, b.rounds, time.Since(began).Round(time.Second))
	}
	return s, nil
}
