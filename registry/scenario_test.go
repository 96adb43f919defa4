package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A scenario is a text file of blocks: commands, a line of dashes, and what they print. Commands:
//
//	partitions N               open streams 0 to N-1, as owner L (default 1)
//	beat SERVICE/ID [inc= seq= addr= status= weight= url= zone= interval= stale= report= part=]
//	urls SERVICE/ID N PREFIX   N beats, each with another url: PREFIX1, PREFIX2, …
//	bye SERVICE/ID [inc= seq= part=]
//	pulse TIME [xN] [part=] [session=] [n=]     to all partitions unless part is given
//	bad REASON [part=]         an unusable record
//	apply [part=] [backlog]    apply what was gathered; backlog: the log goes on after it
//	reopen                     a new owner for each partition
//	adopt N                    the topic has N partitions now
//	restart OFFSET [part=]     set a partition's position
//	housekeep TIME             as if it were TIME later
//	show, events [KIND], count, services, claims, changes N, streams, rejected
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			onEach(t, Options{RejectedKeep: 3, Now: func() time.Time { return clock }}, func(t *testing.T, s *Store) {
				runScenario(t, s, file)
			})
		})
	}
}

func runScenario(t *testing.T, s *Store, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sc := &scenario{t: t, store: s, seqs: map[string]int64{}}
	sc.partitions(1)
	var got strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		sc.out.Reset()
		for _, line := range strings.Split(commands, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				sc.run(line)
			}
		}
		got.WriteString(strings.TrimRight(commands, "\n") + "\n----\n" + sc.out.String() + "\n")
	}
	result := strings.TrimSpace(got.String()) + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(result), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(result, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

type scenario struct {
	t       *testing.T
	store   *Store
	parts   []*scenarioPart
	lastSeq int64
	seqs    map[string]int64
	out     strings.Builder
}

type scenarioPart struct {
	stream *Stream
	batch  Batch
	pulseN int64
}

func (sc *scenario) partitions(n int) {
	for part := len(sc.parts); part < n; part++ {
		st, err := sc.store.OpenStream(context.Background(), int32(part), "L")
		if err != nil {
			sc.t.Fatal(err)
		}
		if st.State().NextOffset < 0 {
			if err := st.Restart(context.Background(), 0, ""); err != nil {
				sc.t.Fatal(err)
			}
		}
		p := &scenarioPart{stream: st}
		p.batch.From = st.State().NextOffset
		sc.parts = append(sc.parts, p)
	}
}

// run executes one line.
func (sc *scenario) run(line string) {
	words := strings.Fields(line)
	opts := options{}
	var plain []string
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			opts[k] = v
		} else {
			plain = append(plain, w)
		}
	}
	ctx := context.Background()
	arg := func(i int) string {
		if i >= len(plain) {
			sc.t.Fatalf("%q: argument missing", line)
		}
		return plain[i]
	}
	switch words[0] {
	case "partitions":
		sc.partitions(atoi(sc.t, arg(0)))
	case "beat", "bye":
		sc.beat(words[0] == "bye", arg(0), opts)
	case "urls":
		for i := range atoi(sc.t, arg(1)) {
			opts["url"] = arg(2) + strconv.Itoa(i+1)
			sc.beat(false, arg(0), opts)
		}
	case "pulse":
		sc.pulse(plain, opts)
	case "bad":
		p := sc.part(opts)
		p.batch.Rejected = append(p.batch.Rejected, Rejected{Offset: p.end(), Key: "k", Reason: arg(0), Detail: "d", Value: []byte("{"), At: 7})
	case "apply":
		for i, p := range sc.parts {
			if v, ok := opts["part"]; ok && v != strconv.Itoa(i) {
				continue
			}
			sc.apply(i, p, !slices.Contains(plain, "backlog"))
		}
	case "reopen":
		n := len(sc.parts)
		sc.parts = nil
		sc.partitions(n)
	case "adopt":
		sc.say("%v", word(sc.parts[0].stream.Adopt(ctx, atoi(sc.t, arg(0)))))
	case "restart":
		p := sc.part(opts)
		sc.say("%v", word(p.stream.Restart(ctx, int64(atoi(sc.t, arg(0))), "said so")))
		p.batch.From = p.stream.State().NextOffset
	case "housekeep":
		d, err := time.ParseDuration(arg(0))
		if err != nil {
			sc.t.Fatal(err)
		}
		done, err := sc.store.Housekeep(ctx, sc.store.opt.Now().Add(d), Policy{})
		sc.say("services %d, forgotten %d, events %d, rejected %d, %v", done.Services, done.Forgotten, done.Events, done.Rejected, word(err))
	default:
		sc.show(words[0], plain)
	}
}

type options map[string]string

func (o options) get(k, def string) string {
	if v, ok := o[k]; ok {
		return v
	}
	return def
}

func atoi(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (sc *scenario) say(format string, args ...any) { fmt.Fprintf(&sc.out, format+"\n", args...) }

func word(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrFenced):
		return "fenced"
	case errors.Is(err, ErrTooOld):
		return "too old"
	}
	return err.Error()
}

func (sc *scenario) part(o options) *scenarioPart {
	return sc.parts[atoi(sc.t, o.get("part", "0"))]
}

func (p *scenarioPart) end() int64 {
	return p.batch.From + int64(len(p.batch.Records)+len(p.batch.Rejected))
}

func (p *scenarioPart) push(r Record) {
	r.Offset = p.end()
	p.batch.Records = append(p.batch.Records, r)
}

func (sc *scenario) beat(bye bool, who string, o options) {
	service, id, _ := strings.Cut(who, "/")
	dur := func(k, def string) time.Duration {
		d, err := time.ParseDuration(o.get(k, def))
		if err != nil {
			sc.t.Fatal(err)
		}
		return d
	}
	num := func(k, def string) int64 {
		n, err := strconv.ParseInt(o.get(k, def), 10, 64)
		if err != nil {
			sc.t.Fatal(err)
		}
		return n
	}
	s := &Sighting{Service: service, ID: id, Incarnation: num("inc", "0"), Seq: num("seq", "0"), ReceivedAt: 1000,
		Status: StatusLeaving, Interval: dur("interval", "10s"), StaleAfter: dur("stale", "30s")}
	if r := o.get("report", ""); r != "" {
		s.Report = []byte(r)
	}
	if !bye {
		host, port, _ := strings.Cut(o.get("addr", "10.0.0.1:80"), ":")
		s.Status = Status(o.get("status", "up"))
		s.Attrs = Attrs{Scheme: "http", IP: host, Port: atoi(sc.t, port), URL: o.get("url", ""), Zone: o.get("zone", ""),
			Weight: int(num("weight", "1")), MaxFails: 1, FailTimeout: 10 * time.Second}
	}
	sc.part(o).push(Record{Sighting: s})
}

func (sc *scenario) pulse(plain []string, o options) {
	d, err := time.ParseDuration(plain[0])
	if err != nil {
		sc.t.Fatal(err)
	}
	times := 1
	if len(plain) > 1 {
		times = atoi(sc.t, strings.TrimPrefix(plain[1], "x"))
	}
	targets := sc.parts
	if _, ok := o["part"]; ok {
		targets = []*scenarioPart{sc.part(o)}
	}
	for _, p := range targets {
		for range times {
			p.pulseN++
			if v, ok := o["n"]; ok {
				p.pulseN = int64(atoi(sc.t, v))
			}
			p.push(Record{Pulse: &Pulse{Session: o.get("session", "s"), N: p.pulseN, Elapsed: d}})
		}
	}
}

func (sc *scenario) apply(i int, p *scenarioPart, caughtUp bool) {
	b := p.batch
	b.Next = p.end()
	b.LogEnd, b.CaughtUp = b.Next, caughtUp
	if b.Next == b.From {
		return
	}
	if !caughtUp {
		b.LogEnd++
	}
	res, err := p.stream.Apply(context.Background(), b)
	p.batch = Batch{From: b.Next}
	if err != nil {
		sc.say("%d: %s", i, word(err))
		return
	}
	line := fmt.Sprintf("%d: at %v, applied %d", i, res.Clock, res.Applied)
	for _, reason := range slices.Sorted(maps.Keys(res.Ignored)) {
		line += fmt.Sprintf(", %s %d", reason, res.Ignored[reason])
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"joined", res.Joined}, {"stale", res.Stale}, {"unproven", res.Unproven}} {
		if f.n > 0 {
			line += fmt.Sprintf(", %s %d", f.name, f.n)
		}
	}
	sc.say("%s, revision %d", line, res.Revision)
}

// show prints what the database holds.
func (sc *scenario) show(what string, plain []string) {
	switch what {
	case "show":
		sc.instances(strings.Join(plain, " "))
	case "events":
		sc.events(strings.Join(plain, " "))
	case "count":
		sc.rows(`SELECT CONCAT(service, ' has ', COUNT(*), ' routes') FROM route_claim GROUP BY service ORDER BY service`)
	case "services", "claims", "changes":
		sc.snapshot(what, plain)
	case "streams":
		list, err := sc.store.Streams(context.Background())
		if err != nil {
			sc.t.Fatal(err)
		}
		for _, st := range list {
			sc.say("%d: next %d, end %d, clock %v, owner %s", st.Part, st.NextOffset, st.LogEnd, st.Clock, st.Owner)
		}
	case "rejected":
		sc.rows(`SELECT CONCAT(part, ' ', log_offset, ' ', reason, ' ', detail) FROM rejected ORDER BY part, log_offset`)
		sc.rows(`SELECT CONCAT(part, ' ', reason, ' x', n) FROM rejected_count ORDER BY part, reason`)
	default:
		sc.t.Fatalf("unknown command %q", what)
	}
}

func (sc *scenario) rows(q string) {
	var lines []string
	if err := sc.store.db.Select(&lines, q); err != nil {
		sc.t.Fatal(err)
	}
	for _, l := range lines {
		sc.say("%s", l)
	}
}

func (sc *scenario) instances(prefix string) {
	rows, err := sc.store.db.Query(selectRow + ` ORDER BY i.id`)
	if err != nil {
		sc.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r row
		if err := scanInstance(rows, &r, &r.part, &r.clock, &r.seq); err != nil {
			sc.t.Fatal(err)
		}
		if !strings.HasPrefix(r.name().String(), prefix) {
			continue
		}
		line := fmt.Sprintf("%d %s %s %s", r.DenseID, r.name(), r.Liveness, r.Status)
		if r.Incarnation != 0 || r.seq != 0 {
			line += fmt.Sprintf(" %d.%d", r.Incarnation, r.seq)
		}
		sc.say("%s at %s weight %d, part %d clock %v, revision %d: %s", line, address(&r.Attrs), r.Attrs.Weight, r.part,
			micros(r.clock), r.Revision, r.Cause)
	}
	if err := rows.Err(); err != nil {
		sc.t.Fatal(err)
	}
}

// events prints those since the last time; only tells of one kind.
func (sc *scenario) events(only string) {
	events, err := sc.store.ListEvents(context.Background(), EventFilter{Limit: 1000})
	if err != nil {
		sc.t.Fatal(err)
	}
	slices.SortFunc(events, func(a, b Event) int { return int(a.Seq - b.Seq) })
	for _, e := range events {
		if e.Seq <= sc.lastSeq {
			continue
		}
		sc.lastSeq = e.Seq
		if only != "" && e.Kind != only {
			continue
		}
		sc.say("%d %s %s/%s: %s", e.Revision, e.Kind, e.Service, e.ID, e.Cause)
	}
}

func (sc *scenario) snapshot(what string, plain []string) {
	ctx := context.Background()
	snap, err := sc.store.Snapshot(ctx)
	if what == "changes" {
		snap, err = sc.store.Changes(ctx, int64(atoi(sc.t, plain[0])))
	}
	if err != nil {
		sc.say("%s", word(err))
		return
	}
	if what == "changes" {
		for _, i := range snap.Instances {
			sc.say("instance %s/%s %s", i.Service, i.ID, i.Liveness)
		}
	}
	if what != "claims" {
		for _, s := range snap.Services {
			sc.say("service %s empty=%v, revision %d", s.Name, s.EmptiedAt != 0, s.Revision)
		}
	}
	if what != "services" {
		for _, c := range snap.Claims {
			sc.say("claim %s %s, revision %d", c.Path, c.Service, c.Revision)
		}
	}
	if what == "changes" {
		sc.say("removed services %v, claims %v", snap.RemovedServices, snap.RemovedClaims)
	}
}
