package listener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/registry"
)

// fakeLog is one partition's log in memory. It waits on channels only, so it works in a synctest bubble.
type fakeLog struct {
	mu      sync.Mutex
	first   int64
	records []raw // consecutive from first, except holes (offset -1)
	grown   chan struct{}
	down    error         // answer to everything
	hang    chan struct{} // non-nil: calls block until it closes or the source is closed
	fetches atomic.Int64
}

func newFakeLog() *fakeLog { return &fakeLog{grown: make(chan struct{})} }

func (l *fakeLog) add(key, value string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	off := l.first + int64(len(l.records))
	l.records = append(l.records, raw{offset: off, key: []byte(key), value: []byte(value)})
	close(l.grown)
	l.grown = make(chan struct{})
	return off
}

func (l *fakeLog) beat(service, id string, seq int64) int64 {
	return l.add(service+"/"+id, fmt.Sprintf(`{"service":%q,"id":%q,"ip":"10.0.0.1","port":8080,"incarnation":1,"seq":%d}`, service, id, seq))
}

func (l *fakeLog) hole() { // an offset without a record, as transactions and compaction leave them
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, raw{offset: -1})
}

func (l *fakeLog) end() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + int64(len(l.records))
}

// trim is retention: offsets below first are gone.
func (l *fakeLog) trim(first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = slices.Clone(l.records[first-l.first:])
	l.first = first
}

// recreate is a topic deleted and created again.
func (l *fakeLog) recreate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.records = 0, nil
}

func (l *fakeLog) set(down error, hang chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.hang = down, hang
}

// gate is what every call passes: a broker that is down or hangs.
func (l *fakeLog) gate(closed <-chan struct{}) error {
	l.mu.Lock()
	down, hang := l.down, l.hang
	l.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-closed:
			return net.ErrClosed
		}
	}
	return down
}

func (l *fakeLog) dial(ctx context.Context) (source, error) {
	if err := l.gate(ctx.Done()); err != nil {
		return nil, err
	}
	return &fakeSource{log: l, closed: make(chan struct{})}, nil
}

// produce is a pulse's write.
func (l *fakeLog) produce(ctx context.Context, value []byte) error {
	if err := l.gate(ctx.Done()); err != nil {
		return err
	}
	l.add(pulseKey, string(value))
	return nil
}

type fakeSource struct {
	log    *fakeLog
	once   sync.Once
	closed chan struct{}
}

func (s *fakeSource) close() { s.once.Do(func() { close(s.closed) }) }

func (s *fakeSource) bounds() (first, end int64, err error) {
	if err := s.log.gate(s.closed); err != nil {
		return 0, 0, err
	}
	end = s.log.end()
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.first, end, nil
}

func (s *fakeSource) fetch(pos int64, minBytes int, wait time.Duration, each func(raw)) (next, end int64, err error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	s.log.fetches.Add(1)
	for {
		if err := s.log.gate(s.closed); err != nil {
			return pos, 0, err
		}
		s.log.mu.Lock()
		first, records, grown := s.log.first, s.log.records, s.log.grown
		s.log.mu.Unlock()
		end = first + int64(len(records))
		if pos < first || pos > end {
			return pos, 0, kafka.OffsetOutOfRange
		}
		size := 0
		for _, r := range records[pos-first:] {
			size += len(r.key) + len(r.value)
		}
		if size < minBytes {
			select {
			case <-grown:
				continue
			case <-s.closed:
				return pos, 0, net.ErrClosed
			case <-deadline.C:
				minBytes = 0
				continue
			}
		}
		for _, r := range records[pos-first:] {
			if r.offset >= 0 {
				each(r)
			}
		}
		return end, end, nil
	}
}

// fakeRegistry keeps the fence and the clock as the real one does, and every offset that was applied, with how often.
type fakeRegistry struct {
	mu      sync.Mutex
	rows    map[int32]*fakeRow
	applied map[int32]map[int64]int
	beats   map[string]int64 // service/id -> seq of the last applied
	bad     map[string]int   // reason -> count
	events  []string
	judged  int
	adopted []int
	opens   int

	openErr func() error
	onBeat  func(name string, clock time.Duration)
	onJudge func(clock time.Duration)
	before  func(part int32, b registry.Batch) error // before the commit: nothing happened when it fails
	after   func(part int32, b registry.Batch) error // after the commit: it did happen
}

type fakeRow struct {
	next    int64
	clock   time.Duration
	session string
	n       int64
	reread  bool // the clock stands until the end of the log
	owner   string
}

func newFakeRegistry() *fakeRegistry {
	return &fakeRegistry{rows: map[int32]*fakeRow{}, applied: map[int32]map[int64]int{}, beats: map[string]int64{}, bad: map[string]int{}}
}

func (f *fakeRegistry) OpenStream(ctx context.Context, part int32, owner string) (Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens++
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.openErr != nil {
		if err := f.openErr(); err != nil {
			return nil, err
		}
	}
	row := f.rows[part]
	if row == nil {
		row = &fakeRow{next: -1}
		f.rows[part] = row
		f.applied[part] = map[int64]int{}
	}
	row.owner = owner
	return &fakeStream{f: f, part: part, state: registry.StreamState{Part: part, NextOffset: row.next, Clock: row.clock, Owner: owner}}, nil
}

type fakeStream struct {
	f     *fakeRegistry
	part  int32
	state registry.StreamState
}

func (s *fakeStream) State() registry.StreamState { return s.state }

func (s *fakeStream) Apply(ctx context.Context, b registry.Batch) (registry.Result, error) {
	f := s.f
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if before != nil {
		if err := before(s.part, b); err != nil {
			return registry.Result{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return registry.Result{}, err
	}
	res, err := f.commit(s.part, b)
	if err != nil {
		return res, err
	}
	if after != nil {
		if err := after(s.part, b); err != nil {
			return registry.Result{}, err
		}
	}
	s.state.NextOffset, s.state.Clock = b.Next, res.Clock
	return res, nil
}

func (f *fakeRegistry) commit(part int32, b registry.Batch) (registry.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row := f.rows[part]
	if row.next != b.From {
		return registry.Result{}, registry.ErrFenced
	}
	res := registry.Result{Ignored: map[string]int{}}
	for _, r := range b.Records {
		f.applied[part][r.Offset]++
		if p := r.Pulse; p != nil {
			if !row.reread && p.Session == row.session && p.N == row.n+1 {
				row.clock += min(p.Elapsed, 2*time.Second)
			}
			row.session, row.n = p.Session, p.N
			continue
		}
		f.beats[r.Sighting.Service+"/"+r.Sighting.ID] = r.Sighting.Seq
		res.Applied++
		if f.onBeat != nil {
			f.onBeat(r.Sighting.Service+"/"+r.Sighting.ID, row.clock)
		}
	}
	for _, r := range b.Rejected {
		f.applied[part][r.Offset]++
		f.bad[r.Reason]++
	}
	if b.CaughtUp {
		row.reread = false
		f.judged++
		if f.onJudge != nil {
			f.onJudge(row.clock)
		}
	}
	row.next, res.Clock = b.Next, row.clock
	return res, nil
}

func (s *fakeStream) Restart(ctx context.Context, offset int64, cause string) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	row := s.f.rows[s.part]
	if row.next != s.state.NextOffset {
		return registry.ErrFenced
	}
	row.reread = row.reread || offset < row.next
	row.next, s.state.NextOffset = offset, offset
	row.session, row.n = "", 0
	if cause != "" {
		s.f.events = append(s.f.events, cause)
	}
	return nil
}

func (s *fakeStream) Adopt(ctx context.Context, partitions int) error {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	s.f.adopted = append(s.f.adopted, partitions)
	return nil
}

// look runs fn with the registry locked.
func (f *fakeRegistry) look(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fakeRegistry) clock(part int32) (d time.Duration) {
	f.look(func() { d = f.rows[part].clock })
	return d
}

func (f *fakeRegistry) next(part int32) (n int64) {
	n = -1
	f.look(func() {
		if row := f.rows[part]; row != nil {
			n = row.next
		}
	})
	return n
}

// seq is the last applied one of an instance, such as orders/a.
func (f *fakeRegistry) seq(name string) (n int64) {
	f.look(func() { n = f.beats[name] })
	return n
}

// refused is how many bad records there are, by reason and in all.
func (f *fakeRegistry) refused(reason string) (n, all int) {
	f.look(func() {
		for _, c := range f.bad {
			all += c
		}
		n = f.bad[reason]
	})
	return n, all
}

// restarts are the causes of the events so far.
func (f *fakeRegistry) restarts() (causes []string) {
	f.look(func() { causes = slices.Clone(f.events) })
	return causes
}

// exactlyOnce fails unless every record of the log was applied once and the stream stands at its end. A pulse that was
// written at the last moment may be left.
func (f *fakeRegistry) exactlyOnce(t *testing.T, part int32, l *fakeLog) {
	t.Helper()
	next := f.next(part)
	l.mu.Lock()
	defer l.mu.Unlock()
	f.look(func() {
		for _, r := range l.records {
			n := f.applied[part][r.offset]
			late := r.offset >= next && string(r.key) == pulseKey
			if r.offset >= 0 && n != 1 && !(late && n == 0) {
				t.Errorf("offset %d was applied %d times", r.offset, n)
			}
		}
	})
}

var errAway = errors.New("database away")

// testConfig is a valid config over rec, at production's times.
func testConfig(rec Recorder) Config {
	cfg, err := Config{
		Brokers: []string{"127.0.0.1:1"}, Topic: "beats", GroupID: "g", Owner: "test", Recorder: rec, Logger: zerolog.Nop(),
	}.withDefaults()
	if err != nil {
		panic(err)
	}
	return cfg
}

// testOwner owns partition part of l.
func testOwner(t *testing.T, cfg Config, part int32, l *fakeLog) *owner {
	t.Helper()
	met, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &owner{
		cfg: &cfg, met: met, log: cfg.Logger, state: newPartState(part), part: part,
		dial: l.dial, pulse: l.produce,
		partitions: func(context.Context) (int, error) { return 6, nil },
	}
}

// start runs o; the returned function ends it and waits.
func (o *owner) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); o.run(ctx) }()
	return func() { cancel(); <-done }
}

// metricValue is the value of a counter or gauge.
func metricValue(m prometheus.Metric) float64 {
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		panic(err)
	}
	if out.Counter != nil {
		return out.Counter.GetValue()
	}
	return out.Gauge.GetValue()
}
