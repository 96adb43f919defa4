package simulate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/site"
)

// Options say what a run prints. The zero value prints one line for each pick, and the totals.
type Options struct {
	Totals  bool      // only the totals: a pick is not explained then, which makes long runs quick
	Explain bool      // under each pick its candidates and why one of them won
	CSV     io.Writer // one row for each candidate of each pick; nil: none
	Seed    uint64    // of all chance; a seed in the scenario wins
	// Open reads the configuration that a reload names; nil: reloads with a name are errors.
	Open func(name string) (*proxy.File, error)
}

// ErrUnmet is wrapped by the error of a run in which something else happened than the scenario expects.
var ErrUnmet = errors.New("the scenario expects something else")

// run is a scenario on its way.
type run struct {
	ctx      context.Context
	out      *bufio.Writer
	csv      *table
	options  Options
	scenario *Scenario
	world    *world
	proxy    *proxy.Proxy
	file     *proxy.File

	line     int // of the scenario
	requests int
	picks    int
	last     []outcome // of the last request line, when wanted
	wanted   bool      // the next line looks at them
	totals   *totals
	totalled bool            // totals have been printed
	spare    visit           // of requests that end before the next one begins
	gone     map[string]bool // held requests that gave up waiting
	faults   []error         // expectations that were not met
	headed   bool            // the columns have been named
	began    int64           // virtual time at the beginning
}

// outcome is what expectations are compared with.
type outcome struct{ peers, status string }

// Run plays a scenario against a configuration, in a world without sockets and with a clock of its own, and prints every
// pick. The same configuration, scenario and seed print the same. An error that wraps ErrUnmet tells of expectations
// that were not met, after the whole scenario was played; any other ended it.
func Run(ctx context.Context, w io.Writer, f *proxy.File, s *Scenario, o Options) error {
	seed := o.Seed
	if s.seeds {
		seed = s.seed
	}
	r := &run{ctx: ctx, out: bufio.NewWriter(w), options: o, scenario: s, world: newWorld(seed), totals: newTotals(), gone: map[string]bool{}}
	if !s.start.IsZero() {
		r.world.ns.Store(s.start.UnixNano())
	}
	if o.CSV != nil {
		r.csv = newTable(o.CSV)
	}
	err := r.play(f)
	if r.csv != nil {
		err = errors.Join(err, r.csv.flush())
	}
	return errors.Join(err, r.out.Flush())
}

func (r *run) play(f *proxy.File) (err error) {
	if r.proxy, err = r.world.proxy(r.watch()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.proxy.Shutdown(context.Background())) }()
	defer r.world.finish()
	if err := r.apply(f); err != nil {
		return err
	}
	r.began = r.world.Now()
	if r.options.Explain && !r.options.Totals {
		r.ctx = site.WithTrace(r.ctx, r.walked)
	}
	for i, l := range r.scenario.steps {
		r.line = l.number
		r.wanted = i+1 < len(r.scenario.steps) && expects(r.scenario.steps[i+1].does)
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := l.does.do(r); err != nil {
			return fmt.Errorf("%s:%d: %w", r.scenario.name, l.number, err)
		}
	}
	if r.totals.requests > 0 || !r.totalled {
		r.printTotals()
	}
	return errors.Join(r.faults...)
}

// watch is what looks at every pick; nil when nobody wants to know.
func (r *run) watch() func(*balance.Explanation) {
	if r.options.Totals && r.csv == nil {
		return nil
	}
	return func(e *balance.Explanation) {
		if v := r.world.current; v != nil {
			v.picks = append(v.picks, pick{explained: e, upto: len(v.tries)})
		}
	}
}

// walked keeps what a request's walk through an upstrand does, to be told among its picks.
func (r *run) walked(s site.Step) {
	if v := r.world.current; v != nil && s.What == "upstrand" {
		v.walk = append(v.walk, walkStep{s.Text, len(v.picks)})
	}
}

func expects(s step) bool {
	_, ok := s.(*expectStep)
	return ok
}

func (r *run) unmet(what string) {
	r.faults = append(r.faults, fmt.Errorf("%s:%d: %w: %s", r.scenario.name, r.line, ErrUnmet, what))
}

// apply puts a configuration in force.
func (r *run) apply(f *proxy.File) error {
	if err := r.world.load(r.proxy, f); err != nil {
		return err
	}
	r.file = f
	return nil
}

func (r *run) reload(name string) error {
	if name == "" {
		return r.apply(r.file)
	}
	if r.options.Open == nil {
		return fmt.Errorf("reload %s: no other configuration can be read here", name)
	}
	f, err := r.options.Open(name)
	if err != nil {
		return fmt.Errorf("reload %s: %w", name, err)
	}
	return r.apply(f)
}

// sendOne sends the n-th request of a line.
func (r *run) sendOne(t *template, n int) {
	v := &r.spare
	v.again()
	r.requests++
	v.number = r.requests
	r.world.send(r.ctx, r.proxy, t.request(n), v)
	r.ended(v)
}

// holdOne sends a request that stays at its server.
func (r *run) holdOne(s *requestStep) error {
	if len(r.world.held(s.hold)) > 0 {
		return fmt.Errorf("a request %s is held already", s.hold)
	}
	delete(r.gone, s.hold)
	v := &visit{hold: s.hold, name: s.hold}
	r.requests++
	v.number = r.requests
	v.done = func() {
		if v.stayed { // it was held: this is its end
			r.tellEnd(v)
		}
	}
	if !r.world.open(r.ctx, r.proxy, s.template.request(0), v) {
		r.ended(v)
		return nil
	}
	r.print(v)
	v.stayed = true
	r.last = append(r.last, outcome{v.peers(), "held"})
	return nil
}

// ended takes in a request that has its answer.
func (r *run) ended(v *visit) {
	r.totals.add(v)
	r.print(v)
	if r.wanted {
		r.last = append(r.last, outcome{v.peers(), v.status()})
	}
}

func (r *run) heldNames() []string {
	var out []string
	for _, v := range r.world.waiting {
		out = append(out, v.hold)
	}
	return out
}

// addresses is where the servers of that text are: those of the configuration, or an ip:port of anybody.
func (r *run) addresses(text string) ([]string, error) {
	seen := map[string]bool{}
	var out []string
	for _, name := range r.proxy.Upstreams() {
		g := r.proxy.Group(name)
		for _, p := range g.Peers() {
			if (p.ID() == text || p.Addr() == text) && !seen[p.Addr()] {
				seen[p.Addr()] = true
				out = append(out, p.Addr())
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if strings.Contains(text, ":") {
		if addr, err := r.world.address(text); err == nil {
			return []string{addr}, nil
		}
	}
	return nil, r.noServer(text)
}

// servers is the servers of the configuration in force, by the text of their lines.
func (r *run) servers() (names []string) {
	for _, name := range r.proxy.Upstreams() {
		for _, p := range r.proxy.Group(name).Peers() {
			names = append(names, p.ID())
		}
	}
	return unique(names)
}

func (r *run) noServer(name string) error {
	return fmt.Errorf("no server %s in the configuration; servers: %s", name, or(strings.Join(r.servers(), ", "), "none"))
}

func (r *run) noUpstream(name string) error {
	return fmt.Errorf("no upstream %s in the configuration; upstreams: %s", name, or(strings.Join(r.proxy.Upstreams(), ", "), "none"))
}

func unique(in []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
