package main

import (
	"fmt"
	"io"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/poll"
)

// hold opens the connections, makes a request on each, one after the other, says so in a line, and keeps them until in ends.
func (p plan) hold(in io.Reader, out io.Writer) error {
	g := &generator{plan: p, request: request(p), buf: make([]byte, 64<<10)}
	var err error
	if g.poller, err = poll.New(); err != nil {
		return err
	}
	defer g.close()
	if err := g.connect(); err != nil {
		return err
	}
	g.base, g.over = time.Now(), true
	for i := range g.conns {
		began := g.now()
		for g.send(i, began); g.busy > 0; {
			if err := g.poller.Wait(time.Second, g.ready); err != nil {
				return err
			}
			if g.now()-began > 10*time.Second {
				return fmt.Errorf("connection %d: no answer in 10 s", i+1)
			}
		}
		if g.failed > 0 {
			return fmt.Errorf("connection %d: %s", i+1, g.fault)
		}
	}
	if _, err := fmt.Fprintf(out, "held %d\n", p.conns); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in)
	return nil
}
