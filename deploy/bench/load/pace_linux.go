package main

import "time"

// pace lets requests leave at a fixed rate. A request whose time has come while all connections are busy waits for the first free one, and its
// latency counts from its time.
type pace struct {
	every time.Duration
	next  time.Duration   // when the next request is due
	idle  []int           // connections without a request
	due   []time.Duration // times of requests that found no connection
	late  time.Duration   // the most that a request left after its time
}

func newPace(rate float64, conns int) *pace {
	p := &pace{every: time.Duration(float64(time.Second) / rate)}
	for i := range conns {
		p.idle = append(p.idle, i)
	}
	return p
}

// release sends what is due and returns how long it is until the next one.
func (p *pace) release(g *generator) time.Duration {
	now := g.now()
	for ; p.next <= now; p.next += p.every {
		if len(p.idle) == 0 {
			p.due = append(p.due, p.next)
			continue
		}
		i := p.idle[0] // the one that rested longest: all connections take part
		p.idle = p.idle[1:]
		p.send(g, i, p.next)
	}
	return p.next - now
}

// free takes a connection whose answer is complete.
func (p *pace) free(g *generator, i int) {
	if len(p.due) == 0 {
		p.idle = append(p.idle, i)
		return
	}
	at := p.due[0]
	p.due = p.due[1:]
	p.send(g, i, at)
}

func (p *pace) send(g *generator, i int, at time.Duration) {
	p.late = max(p.late, g.now()-at)
	g.send(i, at)
}
