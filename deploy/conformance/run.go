package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Job is one case to run, with the program that it runs against.
type Job struct {
	Vector  *Vector
	Command []string // {conf} and {dir} are filled in
	Check   []string // for cases that only check a configuration; it must say no by its exit code
	Nginx   bool     // the program is a real nginx
	Ours    Ours     // what we do instead, on purpose
	Dir     string
}

// Verdict is how a case went.
type Verdict struct {
	Skipped string // why it can't be run
	Diffs   []string
}

// run is a case on its way.
type run struct {
	Job
	addr   string
	byAddr map[string]string // symbol of an address
	bench  *bench
	back   map[string]*backend
	srv    *server
	opened map[string]opened
	count  int
	diffs  []string
}

type opened struct {
	rid  string
	done chan answer
}

// Run carries out the case in the present network namespace.
func (j Job) Run() Verdict {
	conf := filepath.Join(j.Dir, "test.conf")
	if err := os.WriteFile(conf, []byte(j.Vector.File(j.Dir, j.Nginx)), 0o644); err != nil {
		return Verdict{Diffs: []string{err.Error()}}
	}
	if random, counted := j.Vector.Random(); random && !counted && j.Vector.ConfigOK == nil && j.Ours == nil {
		return Verdict{Skipped: "the recorded order is one of many"}
	}
	if j.Vector.ConfigOK != nil {
		return j.check(conf)
	}
	r := &run{Job: j, addr: listen, byAddr: map[string]string{}, bench: newBench(), back: map[string]*backend{}, opened: map[string]opened{}}
	if err := r.all(conf); err != nil {
		r.diffs = append(r.diffs, err.Error())
	}
	return Verdict{Diffs: r.diffs}
}

// check is a case that only looks at the configuration.
func (j Job) check(conf string) Verdict {
	if j.Check == nil {
		return Verdict{Skipped: "no command to check a configuration is given"}
	}
	command := words(j.Check, conf, j.Dir)
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	want := j.Ours.Accepted(j.Vector)
	if ok := err == nil; ok != want {
		return Verdict{Diffs: []string{fmt.Sprintf("configuration accepted: want %v, got %v: %.300s", want, ok, out)}}
	}
	return Verdict{}
}

func (r *run) all(conf string) error {
	defer close(r.bench.over)
	for name, text := range r.Vector.ServerAddresses {
		b := &backend{bench: r.bench, name: name, addr: HostPort(text)}
		r.back[name], r.byAddr[b.addr] = b, name
		if err := b.set("ok"); err != nil {
			return err
		}
	}
	var err error
	if r.srv, err = start(words(r.Command, conf, r.Dir), r.Dir); err != nil {
		return err
	}
	for i := range r.Vector.Steps {
		if err = r.step(i, &r.Vector.Steps[i]); err != nil {
			err = fmt.Errorf("step %d: %w", i+1, err)
			break
		}
	}
	if ended := r.srv.end(); err == nil {
		err = ended
	}
	return err
}

func (r *run) step(i int, s *Step) error {
	if s.Align {
		now := time.Now()
		time.Sleep(now.Truncate(time.Second).Add(1060*time.Millisecond).Sub(now) % time.Second)
	}
	time.Sleep(time.Duration(s.Wait * float64(time.Second)))
	if s.Reload {
		if err := r.srv.reload(); err != nil {
			return err
		}
	}
	for name, mode := range s.Set {
		if err := r.back[name].set(mode); err != nil {
			return err
		}
	}
	if err := r.release(s.Release); err != nil {
		return err
	}
	got, err := r.requests(s)
	if err != nil || got == nil {
		return err
	}
	for _, d := range Compare(r.Ours.At(i+1, s.Expect), got, r.Vector) {
		r.diffs = append(r.diffs, fmt.Sprintf("step %d: %s", i+1, d))
	}
	return nil
}

// release lets held requests be answered and waits until they are.
func (r *run) release(names []string) error {
	for _, name := range names {
		close(r.bench.hold(name))
	}
	for _, name := range names {
		o := r.opened[name]
		<-o.done
		if err := r.srv.logged(o.rid); err != nil {
			return err
		}
	}
	if names != nil {
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// requests sends those of the step and says what was seen; nil when there are none.
func (r *run) requests(s *Step) (map[string]any, error) {
	if s.Open != nil {
		return r.open(s)
	}
	all, err := s.Requests()
	if err != nil || all == nil {
		return nil, err
	}
	rids, answers := make([]string, len(all)), make([]answer, len(all))
	for i, q := range all {
		rids[i] = r.rid()
		answers[i] = send(r.addr, q, rids[i], "")
		if len(all) <= 60 {
			if err := r.srv.logged(rids[i]); err != nil {
				return nil, err
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	if err := r.srv.logged(rids...); err != nil {
		return nil, err
	}
	return r.seen(s, rids, answers), nil
}

// open sends requests that stay open at the backend.
func (r *run) open(s *Step) (map[string]any, error) {
	peers, status := [][]string{}, []any{}
	for _, name := range s.Open {
		rid := r.rid()
		arrived := r.bench.expect(rid)
		o := opened{rid, make(chan answer, 1)}
		go func() { o.done <- send(r.addr, *s.Request, rid, name) }()
		var ended *answer
		select {
		case <-arrived:
		case a := <-o.done:
			ended = &a
		case <-time.After(5 * time.Second):
		}
		time.Sleep(30 * time.Millisecond)
		if ended == nil {
			select {
			case a := <-o.done:
				ended = &a
			default:
			}
		}
		if ended != nil {
			if err := r.srv.logged(rid); err != nil {
				return nil, err
			}
			tried, _ := r.tried(rid)
			peers, status = append(peers, tried), append(status, ended.status)
			continue
		}
		reached := []string{}
		for _, seen := range r.bench.of(rid) {
			reached = append(reached, seen.Server)
		}
		peers, status = append(peers, reached), append(status, "held")
		r.opened[name] = o
	}
	return map[string]any{"peers": peers, "status": status}, nil
}

func (r *run) rid() string {
	r.count++
	return "r" + strconv.Itoa(r.count)
}

var between = regexp.MustCompile(`, | : `)

// tried is the servers that the access log names for a request, and their statuses.
func (r *run) tried(rid string) (peers []string, statuses []int) {
	peers, statuses = []string{}, []int{}
	line := r.srv.lines[rid]
	if line["addr"] == "" || line["addr"] == "-" {
		return peers, statuses
	}
	for _, addr := range between.Split(line["addr"], -1) {
		name := r.byAddr[addr]
		switch {
		case name != "":
		case addr != "" && addr[0] >= '0' && addr[0] <= '9':
			name = addr
		default:
			name = "!" + addr
		}
		peers = append(peers, name)
	}
	for _, text := range between.Split(line["us"], -1) {
		n, _ := strconv.Atoi(text)
		statuses = append(statuses, n)
	}
	return peers, statuses
}

var (
	address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d+|localhost:\d+`)
	seconds = regexp.MustCompile(`\d+\.\d{3}`)
)

// seen is what can be compared of the requests of a step, by the names of the recording.
func (r *run) seen(s *Step, rids []string, answers []answer) map[string]any {
	n := len(rids)
	peers, upstream := make([][]string, n), make([][]int, n)
	status, body, received := make([]int, n), make([]string, n), make([][]Seen, n)
	texts := map[string][]string{}
	for i, rid := range rids {
		peers[i], upstream[i] = r.tried(rid)
		status[i], body[i], received[i] = answers[i].status, answers[i].body, r.bench.of(rid)
		for _, kv := range logged[firstVariable:] {
			text := address.ReplaceAllStringFunc(r.srv.lines[rid][kv[0]], func(a string) string { return or(r.byAddr[a], a) })
			field := kv[1]
			if strings.HasSuffix(field, "_time") {
				field, text = field+"_pattern", seconds.ReplaceAllString(text, "T")
			}
			texts[field] = append(texts[field], text)
		}
	}
	got := map[string]any{"peers": peers, "upstream_status": upstream, "status": status, "status_all": status, "body": body, "received": received}
	for field, list := range texts {
		got[field] = list
	}
	if s.Expect["response_headers"] != nil {
		got["response_headers"] = headers(s.Expect["response_headers"], answers)
	}
	return got
}

// headers is those fields of the answers that the recording has.
func headers(want json.RawMessage, answers []answer) map[string][][]string {
	var names map[string]any
	_ = json.Unmarshal(want, &names)
	out := map[string][][]string{}
	for name := range names {
		for _, a := range answers {
			out[name] = append(out[name], a.values(name))
		}
	}
	return out
}
