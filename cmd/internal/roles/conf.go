package roles

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/site"
)

// watchEvery is how often --watch looks at the files.
const watchEvery = time.Second

// conf is the configuration file of a proxy: it is read and put in force at the start, on SIGHUP, and with --watch when a
// file of it changes. One that can't be used leaves the old one in force.
type conf struct {
	path      string
	published bool // a topology is published beside it
	px        *proxy.Proxy
	doors     *proxy.Doors
	log       zerolog.Logger
	metrics   confMetrics
	replace   func(context.Context, []proxy.Socket) *os.Process // starts the process that follows on this one

	mu    sync.Mutex
	state proxy.FileState
	files []string // of what was read last
}

type confMetrics struct {
	reloads *prometheus.CounterVec // result
	current prometheus.Gauge
	loaded  prometheus.Gauge
}

func newConf(path string, published bool, px *proxy.Proxy, log zerolog.Logger, r prometheus.Registerer) (*conf, error) {
	c := &conf{path: path, published: published, px: px, doors: proxy.NewDoors(px.ServeDoor), log: log, metrics: confMetrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "upstrand_proxy_file_reads_total",
			Help: "Times that the configuration file was read, by result: used or refused."}, []string{"result"}),
		current: prometheus.NewGauge(prometheus.GaugeOpts{Name: "upstrand_proxy_file_current",
			Help: "1: what was read last is in force; 0: it can't be used, and an older one is."}),
		loaded: prometheus.NewGauge(prometheus.GaugeOpts{Name: "upstrand_proxy_file_loaded_timestamp_seconds",
			Help: "When the configuration in force was read, in Unix time."}),
	}}
	c.state.Name = path
	for _, m := range []prometheus.Collector{c.metrics.reloads, c.metrics.current, c.metrics.loaded} {
		if err := r.Register(m); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// load reads the file and puts it in force, or changes nothing. All that can fail comes first: reading, compiling, and
// the sockets that it wants.
func (c *conf) load() error {
	began := time.Now()
	f, err := conffile.Read(c.path, c.published)
	if err == nil {
		err = c.use(f)
	}
	c.note(f, began, err)
	return err
}

func (c *conf) use(f *conffile.File) error {
	compiled, err := c.px.Compile(f.Use)
	if err != nil {
		return err
	}
	f.Notices = append(f.Notices, compiled.Notices()...)
	change, err := c.doors.Prepare(doorsOf(compiled))
	if err != nil {
		compiled.Close()
		return placed(err, compiled.Site().Listens())
	}
	if err := c.px.Use(compiled); err != nil {
		change.Abandon()
		compiled.Close()
		return err
	}
	change.Commit()
	return nil
}

// placed names the line of the file that wants a door which can't be opened.
func placed(err error, listens []site.Listen) error {
	var door *proxy.DoorError
	if !errors.As(err, &door) {
		return err
	}
	for _, l := range listens {
		if l.Addr == door.Addr && l.Line > 0 {
			return proxy.Faults{{File: l.File, Line: l.Line, Name: "listen", Reason: door.Error()}}
		}
	}
	return err
}

func doorsOf(c *proxy.Compiled) (list []proxy.Door) {
	for _, l := range c.Site().Listens() {
		list = append(list, proxy.Door{
			Addr: l.Addr, Reuse: l.ReusePort, Both: l.Addr.Addr().Is6() && !l.V6Only,
			TLS: l.TLS, HTTP2: l.HTTP2, ProxyProtocol: l.ProxyProtocol, Conns: l.Conns, ConnsPerAddress: l.ConnsPerAddress, Limits: c.Site().Client(l.Addr),
		})
	}
	return list
}

// note keeps what became of a read, for people to see.
func (c *conf) note(f *conffile.File, began time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Tried, c.state.Current, c.state.Faults = began, err == nil, nil
	if err != nil {
		c.metrics.reloads.WithLabelValues("refused").Inc()
		c.metrics.current.Set(0)
		c.state.Faults = faultLines(err)
		c.files = union(c.files, f.Read) // what was served before may be what changes next
		return
	}
	c.metrics.reloads.WithLabelValues("used").Inc()
	c.metrics.current.Set(1)
	c.metrics.loaded.Set(float64(c.state.Tried.UnixMilli()) / 1000)
	c.state.Loaded, c.state.Listen, c.files = c.state.Tried, c.doors.Addrs(), f.Read
	told := map[string]bool{} // with the last file; what stays is not told again
	for _, n := range c.state.Notices {
		told[n] = true
	}
	c.state.Notices = nil
	for _, n := range f.Notices {
		if !told[n.Error()] {
			c.log.Info().Str("notice", n.Error()).Msg("part of the file has no effect here")
		}
		c.state.Notices = append(c.state.Notices, n.Error())
	}
}

func faultLines(err error) (lines []string) {
	var faults proxy.Faults
	if !errors.As(err, &faults) {
		return []string{err.Error()}
	}
	for _, f := range faults {
		lines = append(lines, f.Error())
	}
	return lines
}

func union(a, b []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, list := range [][]string{a, b} {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// reload is load while requests are served: what goes wrong is said, and the old file stays.
func (c *conf) reload(why string) {
	began := time.Now()
	err := c.load()
	if err == nil {
		c.log.Info().Str("file", c.path).Str("cause", why).Dur("took", time.Since(began)).Strs("listen", c.State().Listen).Msg("file read again")
		return
	}
	for _, line := range faultLines(err) {
		c.log.Error().Str("file", c.path).Str("cause", why).Str("fault", line).Msg("the file can't be used: what was read before stays in force")
	}
}

// State is what is known of the file.
func (c *conf) State() *proxy.FileState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	return &s
}

// run reads the file again whenever it is told to, until ctx ends. SIGUSR1 opens the access logs anew, for who rotates
// them, as in nginx.
func (c *conf) run(ctx context.Context, got *signals, watch bool) {
	var ticks <-chan time.Time
	if watch {
		t := time.NewTicker(watchEvery)
		defer t.Stop()
		ticks = t.C
	}
	w := watcher{}
	w.look(c.watched(), c.State().Tried)
	for {
		select {
		case <-ctx.Done():
			return
		case <-got.reopen:
			c.px.ReopenLogs()
		case <-got.replace:
			if next := c.replace(ctx, c.doors.Sockets()); next != nil {
				got.handOn(next)
				return
			}
		case <-got.reload:
			c.reload("SIGHUP")
			w.look(c.watched(), c.State().Tried)
		case <-ticks:
			if w.changed(c.watched()) {
				c.reload("a file changed")
				w.look(c.watched(), c.State().Tried)
			}
		}
	}
}

func (c *conf) watched() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files
}
