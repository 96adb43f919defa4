package compare

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// scenario is a generated upstream with what happens to it. It is the same for the same number.
type scenario struct {
	number   int
	upstream []string // lines of the upstream block; sN stands for a server
	location []string // lines of the location beside proxy_pass
	steps    []step
}

// step begins at the start of a second. Everything in it happens within that second.
type step struct {
	seconds int               // waited before it
	set     map[string]string // behaviour of servers from now on
	release bool              // lets the held requests be answered first
	calls   []call
}

// call is one request.
type call struct {
	method, path, client string
	hold                 bool // kept open at the backend until the next release
}

// most servers that a scenario has.
const mostServers = 6

func generate(number int) scenario {
	r := rand.New(rand.NewPCG(uint64(number), 20261130))
	s := scenario{number: number}
	method := pick(r, "", "", "", "least_conn", "least_conn", "ip_hash", "hash $arg_k", "hash $arg_k consistent")
	s.servers(r, method)
	s.policy(r)
	failing := r.IntN(10) < 7
	// A request that is held open and a server that never answers want different timeouts: a scenario has one of the two.
	holds := r.IntN(3) == 0 || method == "least_conn"
	timeout := "250ms"
	if holds {
		timeout = "60s"
	}
	s.location = append(s.location, "proxy_read_timeout "+timeout+";")
	for i := range 1 + r.IntN(4) {
		s.steps = append(s.steps, s.step(r, i, failing, holds))
	}
	return s
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (s *scenario) servers(r *rand.Rand, method string) {
	if method != "" {
		s.upstream = append(s.upstream, method+";")
	}
	n := 1 + r.IntN(mostServers)
	for i := range n {
		name := i + 1
		if i > 0 && r.IntN(15) == 0 {
			name = i // the same address twice
		}
		line := fmt.Sprintf("server s%d", name)
		if r.IntN(2) == 0 {
			line += fmt.Sprintf(" weight=%d", pick(r, 1, 2, 3, 5, 10, 100))
		}
		if r.IntN(3) > 0 {
			line += fmt.Sprintf(" max_fails=%d", r.IntN(4))
		}
		if r.IntN(3) > 0 {
			line += fmt.Sprintf(" fail_timeout=%ds", pick(r, 0, 1, 1, 2, 10))
		}
		if r.IntN(8) == 0 {
			line += fmt.Sprintf(" max_conns=%d", 1+r.IntN(3))
		}
		if r.IntN(12) == 0 {
			line += " down"
		}
		if i > 0 && r.IntN(7) == 0 && (method == "" || method == "least_conn") {
			line += " backup"
		}
		s.upstream = append(s.upstream, line+";")
	}
}

func (s *scenario) policy(r *rand.Rand) {
	if r.IntN(2) == 0 {
		words := []string{"error"}
		for _, w := range []string{"timeout", "invalid_header", "http_500", "http_502", "http_503", "http_504", "http_404", "http_403", "http_429", "non_idempotent"} {
			if r.IntN(3) == 0 {
				words = append(words, w)
			}
		}
		if r.IntN(12) == 0 {
			words = []string{"off"}
		}
		s.location = append(s.location, "proxy_next_upstream "+strings.Join(words, " ")+";")
	}
	if r.IntN(3) == 0 {
		s.location = append(s.location, fmt.Sprintf("proxy_next_upstream_tries %d;", r.IntN(4)))
	}
}

func (s *scenario) step(r *rand.Rand, at int, failing, holds bool) step {
	st := step{release: r.IntN(2) == 0, set: map[string]string{}}
	if at > 0 {
		st.seconds = 1 + r.IntN(3)
	}
	hangs := 0
	for i := range mostServers {
		if !failing || r.IntN(3) > 0 {
			continue
		}
		mode := pick(r, "ok", "ok", "refuse", "refuse", "close", "badheader", "hang",
			"status:500", "status:502", "status:503", "status:504", "status:404", "status:403", "status:429")
		if mode == "hang" {
			if hangs++; hangs > 1 || holds { // each costs the read timeout, and the step must stay within its second
				mode = "close"
			}
		}
		st.set[fmt.Sprintf("s%d", i+1)] = mode
	}
	n := 3 + r.IntN(20)
	if hangs > 0 && !holds {
		n = 2 + r.IntN(3)
	}
	for i := range n {
		c := call{
			method: pick(r, "GET", "GET", "GET", "GET", "POST", "PUT"),
			path:   fmt.Sprintf("?k=%d", r.IntN(40)),
			client: fmt.Sprintf("10.%d.%d.%d", r.IntN(250), r.IntN(250), i),
			hold:   holds && r.IntN(3) == 0,
		}
		st.calls = append(st.calls, c)
	}
	return st
}

// String is the scenario for people.
func (s scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "scenario %d: upstream { %s } location { %s }\n", s.number, strings.Join(s.upstream, " "), strings.Join(s.location, " "))
	for i, st := range s.steps {
		fmt.Fprintf(&b, "  step %d: after %d s, set %v, release %v, %d calls\n", i, st.seconds, st.set, st.release, len(st.calls))
	}
	return b.String()
}
