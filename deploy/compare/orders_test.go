package compare

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// scenarios is how many are generated, a few more than the 500 that are to be compared;
// UPSTRAND_COMPARE_SCENARIOS=N changes it, UPSTRAND_COMPARE_ONLY=N runs that one.
const scenarios = 520

// attempts is how often a scenario is carried out anew, with an upstream of its own, when one of its steps did not fit
// into its second.
const attempts = 4

// TestOrders gives generated upstreams to nginx and to us, sends both the same requests, and compares which peers each
// request met, in which order, how each of them answered, and what the client got.
func TestOrders(t *testing.T) {
	var all []scenario
	first, n := 0, scenarios
	if v, err := strconv.Atoi(os.Getenv("UPSTRAND_COMPARE_SCENARIOS")); err == nil {
		n = v
	}
	if v, err := strconv.Atoi(os.Getenv("UPSTRAND_COMPARE_ONLY")); err == nil {
		first, n = v, 1
	}
	for i := range n {
		all = append(all, generate(first+i))
	}
	var worlds []*world
	for range min(12, n) {
		worlds = append(worlds, newWorld(t))
	}
	listen := address(t)
	conf := ordersFile(all, worlds, listen)
	var results [2][]result
	for i, s := range sides {
		stop := s.start(t, conf, listen)
		results[i] = carryOut(t, s.name, all, worlds, listen)
		stop()
	}
	compared, calls, late := 0, 0, 0
	for i, s := range all {
		a, b := results[0][i], results[1][i]
		if a.late || b.late {
			late++
			continue
		}
		compared++
		calls += len(a.calls)
		report(t, s, a, b)
	}
	t.Logf("%d scenarios compared, %d requests each; %d did not fit into their seconds on this machine", compared, calls, late)
	if late*10 > n {
		t.Errorf("%d of %d scenarios were too slow to compare: run them on a quieter machine", late, n)
	}
}

func report(t *testing.T, s scenario, a, b result) {
	for i := range a.calls {
		if a.calls[i] != b.calls[i] {
			t.Errorf("%s  request %d:\n    nginx    %s\n    upstrand %s\n    before   %v", s, i, a.calls[i], b.calls[i], a.calls[max(0, i-12):i])
			return
		}
	}
}

// ordersFile is one configuration with an upstream for each scenario and attempt.
func ordersFile(all []scenario, worlds []*world, listen string) string {
	var ups, locs strings.Builder
	for i, s := range all {
		w := worlds[i%len(worlds)]
		for a := range attempts {
			name := fmt.Sprintf("u%d-%d", i, a)
			text := strings.Join(s.upstream, " ")
			for k, addr := range w.addrs {
				text = strings.ReplaceAll(text, fmt.Sprintf("server s%d", k+1), "server "+addr)
			}
			fmt.Fprintf(&ups, "upstream %s { %s }\n", name, text)
			fmt.Fprintf(&locs, "  location = /%s { %s proxy_pass http://%s; }\n", name, strings.Join(s.location, " "), name)
		}
	}
	return fmt.Sprintf(`
set_real_ip_from 127.0.0.0/8;
real_ip_header X-Client;
proxy_http_version 1.0;
proxy_connect_timeout 2s;
variables_hash_max_size 4096;
%s
server {
  listen %s;
  add_header X-Addr $upstream_addr always;
  add_header X-Status $upstream_status always;
%s}
`, ups.String(), listen, locs.String())
}

// result is what a scenario showed.
type result struct {
	calls []string
	late  bool
}

// carryOut runs all scenarios, those of one world one after the other.
func carryOut(t *testing.T, side string, all []scenario, worlds []*world, listen string) []result {
	out := make([]result, len(all))
	var running sync.WaitGroup
	for k, w := range worlds {
		running.Go(func() {
			for i := k; i < len(all); i += len(worlds) {
				for a := range attempts {
					r, err := w.run(all[i], fmt.Sprintf("u%d-%d", i, a), listen)
					if err != nil {
						t.Errorf("%s: %s: %v", side, all[i], err)
						r.late = true
					}
					if out[i] = r; !r.late {
						break
					}
				}
			}
			w.close()
		})
	}
	running.Wait()
	return out
}

// tooSlow stands for a request that met a timeout which nobody told a server to cause: the machine is too busy.
const tooSlow = "a timeout of the machine's own"

func (w *world) slow(servers, statuses []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, status := range statuses {
		if status != "504" || i >= len(servers) || !strings.HasPrefix(servers[i], "s") {
			continue
		}
		k, _ := strconv.Atoi(servers[i][1:])
		if mode := w.modes[k-1]; mode != "hang" && mode != "status:504" {
			return true
		}
	}
	return false
}

// run carries out a scenario.
func (w *world) run(s scenario, upstream, listen string) (r result, err error) {
	for i := range w.addrs {
		if err := w.set(i, "ok"); err != nil {
			return r, err
		}
	}
	held := map[int]<-chan string{}
	gather := func() {
		w.letGo()
		for i, c := range held {
			r.calls[i] = <-c
			delete(held, i)
		}
	}
	defer func() {
		gather()
		r.late = r.late || slices.Contains(r.calls, tooSlow)
	}()
	began := time.Now().Truncate(time.Second)
	for n, st := range s.steps {
		if n > 0 {
			began = began.Add(time.Duration(st.seconds) * time.Second)
		} else {
			began = began.Add(time.Second)
		}
		time.Sleep(time.Until(began.Add(60 * time.Millisecond))) // servers count whole seconds of real time
		for name, mode := range st.set {
			k, _ := strconv.Atoi(name[1:])
			if err := w.set(k-1, mode); err != nil {
				return r, err
			}
		}
		if st.release {
			gather()
		}
		for i, c := range st.calls {
			id := fmt.Sprintf("%s-%d-%d", upstream, n, i)
			r.calls = append(r.calls, "held")
			answer, arrived := w.call(c, id, upstream, listen)
			if !c.hold {
				r.calls[len(r.calls)-1] = <-answer
				continue
			}
			select {
			case <-arrived:
				held[len(r.calls)-1] = answer
			case text := <-answer:
				r.calls[len(r.calls)-1] = text
			}
		}
		if time.Since(began) > 940*time.Millisecond {
			r.late = true
			return r, nil
		}
	}
	return r, nil
}

// call makes a request; the first channel gives what came of it, the second tells that a backend holds it.
func (w *world) call(c call, id, upstream, listen string) (<-chan string, <-chan struct{}) {
	arrived := w.expect(id)
	head := fmt.Sprintf("%s /%s%s HTTP/1.1\r\nHost: t\r\nConnection: close\r\nX-Client: %s\r\nX-Id: %s\r\n", c.method, upstream, c.path, c.client, id)
	if c.hold {
		head += "X-Hold: yes\r\n"
	}
	body := ""
	if c.method != "GET" {
		body = "hello"
		head += "Content-Length: 5\r\n"
	}
	answer := make(chan string, 1)
	go func() {
		status, fields, err := roundTrip(listen, head+"\r\n"+body)
		if err != nil {
			answer <- "no answer: " + err.Error()
			return
		}
		tried := fields.Get("X-Addr")
		for i, addr := range w.addrs {
			tried = strings.ReplaceAll(tried, addr, fmt.Sprintf("s%d", i+1))
		}
		words := strings.Split(tried, ", ")
		if k := slices.Index(words, upstream); k >= 0 {
			words[k] = "nobody"
		}
		if w.slow(words, strings.Split(fields.Get("X-Status"), ", ")) {
			answer <- tooSlow
			return
		}
		answer <- fmt.Sprintf("%d from %s (%s)", status, strings.Join(words, ", "), fields.Get("X-Status"))
	}()
	return answer, arrived
}
