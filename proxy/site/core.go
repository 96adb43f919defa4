package site

import (
	"fmt"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
)

// coreSettings are those of nginx's core that this package carries out itself.
type coreSettings struct {
	maxBody     int64 // client_max_body_size in bytes; 0: no limit
	tryFiles    *tryFiles
	internal    bool // for internal redirects only
	recursive   bool // recursive_error_pages
	errorPages  []errorPage
	defaultType string
	types       map[string]string // by extension in lower case
	echo        *echo
	file        fileSettings

	absolute   bool // absolute_redirect
	port       bool // port_in_redirect
	serverName bool // server_name_in_redirect
}

func defaultCore() coreSettings {
	return coreSettings{
		defaultType: "text/plain", maxBody: 1 << 20, absolute: true, port: true,
		types: map[string]string{"html": "text/html", "gif": "image/gif", "jpg": "image/jpeg"},
	}
}

func (c *coreSettings) enterLocation() { c.tryFiles, c.echo = nil, nil }
func (c *coreSettings) enterIf()       { c.tryFiles, c.echo = nil, nil }

var coreSetters = map[string]setter{
	"default_type":            setDefaultType,
	"types":                   setTypes,
	"client_max_body_size":    setMaxBody,
	"error_page":              setErrorPage,
	"recursive_error_pages":   onOff(func(s *settings) *bool { return &s.core.recursive }),
	"absolute_redirect":       onOff(func(s *settings) *bool { return &s.core.absolute }),
	"port_in_redirect":        onOff(func(s *settings) *bool { return &s.core.port }),
	"server_name_in_redirect": onOff(func(s *settings) *bool { return &s.core.serverName }),
	"try_files":               setTryFiles,
	"internal":                setInternal,
	"echo":                    setEcho,
	"echo_status":             setEchoStatus,
	"root":                    setRoot,
	"alias":                   setAlias,
	"index":                   setIndex,
}

func setDefaultType(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 1, 1) {
		l.settings().core.defaultType = n.Args[0]
	}
}

// setTypes reads a block of lines TYPE EXTENSION…; it replaces what was inherited.
func setTypes(l *level, n *topology.Node) {
	types := map[string]string{}
	if !l.first("types") {
		for ext, t := range l.settings().core.types {
			types[ext] = t
		}
	}
	for _, line := range n.Block {
		for _, ext := range line.Args {
			types[strings.ToLower(ext)] = line.Name
		}
	}
	l.settings().core.types = types
}

// contentType is what nginx says of a content that it makes itself: by the path's extension, else the default.
func (r *request) contentType() string {
	if t := r.conf.core.types[strings.ToLower(extension(r.uri))]; t != "" {
		return t
	}
	return r.conf.core.defaultType
}

// extension is what stands behind the last dot of the last segment, unless the dot begins it.
func extension(uri string) string {
	for i := len(uri) - 1; i > 1; i-- {
		if uri[i] == '/' {
			return ""
		}
		if uri[i] == '.' && uri[i-1] != '/' {
			return uri[i+1:]
		}
	}
	return ""
}

func setMaxBody(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 1, 1) {
		return
	}
	size, err := topology.ParseSize(n.Args[0])
	if err != nil {
		l.problem(n, err.Error(), "a size such as 8m; 0: no limit")
		return
	}
	l.settings().core.maxBody = size
}

func setInternal(l *level, n *topology.Node) {
	if l.args(n, 0, 0) {
		l.settings().core.internal = true
	}
}

// tryFiles is where a request goes that finds none of the files, and there are none here.
type tryFiles struct {
	status int // 0: to goes elsewhere
	to     *template
}

func setTryFiles(l *level, n *topology.Node) {
	if !l.once(n) || !l.args(n, 2, -1) {
		return
	}
	last := n.Args[len(n.Args)-1]
	t := &tryFiles{}
	if code, ok := strings.CutPrefix(last, "="); ok {
		status, err := topology.ParseNumber(code, 0)
		if err != nil || status > 999 {
			l.problem(n, fmt.Sprintf("status %q", code), "=404 and the like, up to 999")
			return
		}
		t.status = status
	} else {
		t.to = l.template(n, last)
	}
	for _, file := range n.Args[:len(n.Args)-1] {
		l.template(n, file) // only for what is wrong in it
	}
	l.settings().core.tryFiles = t
}

// tried is what try_files comes to.
func (r *request) tried(t *tryFiles) outcome {
	if t.to == nil {
		return outcome{what: failed, status: t.status}
	}
	to := t.to.Value(r)
	if strings.HasPrefix(to, "@") {
		return r.led(named, 0, to, "")
	}
	uri, args, _ := strings.Cut(to, "?")
	return r.led(redirected, 0, uri, args)
}
