package site

import (
	"path/filepath"
	"strings"
	"sync"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/accesslog"
)

// logSettings are the access logs in force; none unless the configuration names one.
type logSettings struct{ logs []accessLog }

func (*logSettings) defaults() {}

// accessLog is an access_log line.
type accessLog struct {
	to   *accesslog.Log
	late *lateFormat
	when *template // nil: always
}

// logFormat is a log_format.
type logFormat struct {
	node   *topology.Node
	text   *template
	escape accesslog.Escape
}

var logSetters = map[string]setter{
	"log_format": setLogFormat,
	"access_log": setAccessLog,
}

func setLogFormat(l *level, n *topology.Node) {
	if !l.args(n, 2, -1) {
		return
	}
	f := &logFormat{node: n}
	parts := n.Args[1:]
	if word, ok := strings.CutPrefix(parts[0], "escape="); ok {
		if f.escape, ok = accesslog.ParseEscape(word); !ok {
			l.problem(n, quote(parts[0]), "escape=default, escape=json, escape=none")
		}
		parts = parts[1:]
	}
	name := n.Args[0]
	if name == "combined" || l.formats[name] != nil {
		l.problem(n, "format "+quote(name)+" stands already", "another name")
		return
	}
	f.text = l.template(n, strings.Join(parts, ""))
	l.addFormat(name, f)
}

func (c *compiler) addFormat(name string, f *logFormat) {
	if c.formats == nil {
		c.formats = map[string]*logFormat{}
	}
	c.formats[name] = f
}

// format finds a format by name, which may stand behind its use.
func (c *compiler) format(name string) *logFormat {
	if f := c.formats[name]; f != nil || name != "combined" {
		return f
	}
	f := &logFormat{text: c.template(&topology.Node{Name: "log_format"}, accesslog.Combined)}
	c.addFormat("combined", f)
	return f
}

const accessLogAllowed = "PATH [FORMAT] [buffer=SIZE] [flush=TIME] [if=CONDITION], or off"

func setAccessLog(l *level, n *topology.Node) {
	if !l.args(n, 1, -1) {
		return
	}
	set := &l.settings().log
	if l.first(n.Name) {
		set.logs = nil
	}
	path := n.Args[0]
	switch {
	case path == "off" && len(n.Args) == 1:
		set.logs = nil
		return
	case strings.HasPrefix(path, "syslog:"):
		l.problem(n, "syslog is not written to", "a file, /dev/stdout, /dev/stderr, off")
		return
	case strings.Contains(path, "$"):
		l.problem(n, "a path with variables is not built", "a fixed path; several access_log lines with if=")
		return
	}
	a := accessLog{}
	format, options := "combined", accesslog.Options{}
	for i, arg := range n.Args[1:] {
		key, value, isOption := strings.Cut(arg, "=")
		var err error
		switch {
		case i == 0 && !isOption:
			format = arg
		case key == "buffer":
			var size int64
			size, err = topology.ParseSize(value)
			options.Buffer = int(size)
		case key == "flush":
			options.Flush, err = topology.ParseTime(value)
		case key == "gzip":
			l.problem(n, quote(arg)+": lines are not compressed as they are written", accessLogAllowed+"; compress files when they are rotated")
			return
		case key == "if":
			a.when = l.template(n, value)
		default:
			l.problem(n, quote(arg), accessLogAllowed)
			return
		}
		if err != nil {
			l.problem(n, err.Error(), accessLogAllowed)
			return
		}
	}
	if options.Flush > 0 && options.Buffer == 0 {
		l.problem(n, "flush= needs buffer=", accessLogAllowed)
		return
	}
	l.openLog(n, set, a, path, format, options)
}

// openLog finishes an access_log: its format may be defined later.
func (l *level) openLog(n *topology.Node, set *logSettings, a accessLog, path, format string, o accesslog.Options) {
	files := l.options.Logs
	log, err := files.Acquire(l.options.file(path), o)
	if err != nil {
		l.problem(n, err.Error(), "a file that can be written to")
		return
	}
	l.site.logs = append(l.site.logs, log)
	f := &lateFormat{}
	a.to, a.late = log, f
	set.logs = append(set.logs[:len(set.logs):len(set.logs)], a)
	l.later = append(l.later, func() {
		found := l.format(format)
		if found == nil {
			l.problem(n, "format "+quote(format)+" is not defined", "combined, or the name of a log_format")
			found = &logFormat{text: l.template(n, "")}
		}
		*f = lateFormat{found.text, found.escape}
	})
}

// lateFormat is a format that is known when everything was read.
type lateFormat struct {
	line   *template
	escape accesslog.Escape
}

// file is a name as nginx reads it: relative ones begin at the prefix.
func (o *Options) file(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	prefix := o.Prefix
	if prefix == "" {
		prefix = "/etc/nginx"
	}
	return filepath.Join(prefix, name)
}

// Close lets the site's access logs and certificates go. No request may be in it any more.
func (s *Site) Close() {
	for _, h := range s.held {
		h.Close()
	}
	s.held = nil
	for _, l := range s.logs {
		s.files.Release(l)
	}
	s.logs = nil
	s.leaveZones()
}

var lines = sync.Pool{New: func() any { return new([]byte) }}

// log writes the request into the access logs in force.
func (r *request) log() {
	for i := range r.conf.log.logs {
		a := &r.conf.log.logs[i]
		if a.when != nil {
			if v := a.when.Value(r); v == "" || v == "0" {
				continue
			}
		}
		buf := lines.Get().(*[]byte)
		line := a.late.line.AppendEach((*buf)[:0], r, a.late.escape.Append)
		line = append(line, '\n')
		_, _ = a.to.Write(line)
		*buf = line
		lines.Put(buf)
	}
}
