package agent

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/proxy"
)

// Report is what the proxy's beats say of its topology, by the names that the registry shows. Without a topology only
// last_error can be there.
func (a *Agent) Report() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := map[string]string{}
	if t := a.applied; t != nil {
		r["topology_version"] = strconv.FormatInt(t.Version, 10)
		r["topology_epoch"] = strconv.FormatInt(t.Epoch, 10)
		r["topology_digest"] = t.Digest.String()
		r["topology_age_ms"] = strconv.FormatInt(time.Since(t.At).Milliseconds(), 10)
		r["topology_source"] = a.source
	}
	if !a.commit.IsZero() {
		r["commit_age_ms"] = strconv.FormatInt(time.Since(a.commit).Milliseconds(), 10)
	}
	if a.problem != nil {
		r["last_error"] = clip(a.problem.Error())
	}
	if text := blacklistText(a.config.Blacklisted); text != "" {
		r["blacklisted"] = text
	}
	return r
}

// maxBlacklist bounds the text of the blacklist, in bytes: a beat's value may have 1024.
const maxBlacklist = 1000

// blacklistText is what is blacklisted as a JSON list of [upstrand, upstream, Unix second], those first that stay longest;
// empty: nothing is. What does not fit is left out.
func blacklistText(list func() []proxy.Blacklisted) string {
	if list == nil {
		return ""
	}
	text := []byte("[")
	for _, b := range list() {
		row, err := json.Marshal([]any{b.Upstrand, b.Upstream, b.Until})
		if err != nil || len(text)+1+len(row)+1 > maxBlacklist {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, row...)
	}
	if len(text) == 1 {
		return ""
	}
	return string(append(text, ']'))
}

// clip bounds what travels in a beat.
func clip(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

type metrics struct {
	rereads prometheus.Counter
	errors  *prometheus.CounterVec // reason
	commits prometheus.Counter
	saves   *prometheus.CounterVec // result
}

func newMetrics(r prometheus.Registerer, a *Agent) (*metrics, error) {
	name := func(s string) string { return "upstrand_proxy_agent_" + s }
	m := &metrics{
		rereads: prometheus.NewCounter(prometheus.CounterOpts{Name: name("rereads_total"), Help: "Times the topic was read from its start."}),
		commits: prometheus.NewCounter(prometheus.CounterOpts{Name: name("commits_total"), Help: "Commit records seen."}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("errors_total"),
			Help: "Failures to follow: kafka, digest, older, content, apply."}, []string{"reason"}),
		saves: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("file_saves_total"), Help: "Writes of the last good topology."}, []string{"result"}),
	}
	ok := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name("current"),
		Help: "1 when what the topic says is in force, 0 when the last good topology is kept in its place."}, a.current)
	age := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name("commit_age_seconds"),
		Help: "Time since a commit record was seen; -1 before the first. The leader repeats it every 10 s."}, a.commitAge)
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.rereads, m.commits, m.errors, m.saves, ok, age} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (a *Agent) current() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied != nil && a.problem == nil && a.source == SourceTopic {
		return 1
	}
	return 0
}

func (a *Agent) commitAge() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.commit.IsZero() {
		return -1
	}
	return time.Since(a.commit).Seconds()
}
