package roles

import (
	"time"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/accesslog"
)

// accessLog is the settings of a line for each request.
type accessLog struct {
	On     bool
	File   string
	Sample float64
	Buffer int
	Flush  time.Duration
}

func (a *accessLog) flags(set *settings.Set) {
	g := set.Group("Access log")
	g.Bool(&a.On, "access-log", false, "write a line of JSON for every request, with all its attempts")
	g.String(&a.File, "access-log-file", "/dev/stderr", "file of these lines; SIGUSR1 opens it anew")
	g.Float(&a.Sample, "access-log-sample", 1, 0.000001, 1, "part of the requests that get a line; what went wrong gets one in any case")
	g.Int(&a.Buffer, "access-log-buffer", 0, 0, 16<<20, "bytes that are gathered before they are written; 0: every line is written at once")
	g.Duration(&a.Flush, "access-log-flush", time.Second, 10*time.Millisecond, time.Hour, "longest time that a line waits in the buffer")
	set.Check(func() (ps settings.Problems) {
		if a.On {
			if err := accesslog.Probe(a.File); err != nil {
				ps = append(ps, settings.Problem{Flag: "access-log-file", Value: a.File, Allowed: "a file that can be written to is needed: " + err.Error()})
			}
			return ps
		}
		for _, name := range []string{"access-log-file", "access-log-sample", "access-log-buffer", "access-log-flush"} {
			if set.Given(name) {
				ps = append(ps, settings.Problem{Flag: name, Allowed: "only with --access-log"})
			}
		}
		return ps
	})
}

// log is what the proxy is told.
func (a *accessLog) log() (l proxy.AccessLog) {
	if !a.On {
		return l
	}
	l = proxy.AccessLog{Path: a.File, Sample: a.Sample}
	if a.Buffer > 0 {
		l.Options = accesslog.Options{Buffer: a.Buffer, Flush: a.Flush}
	}
	return l
}
