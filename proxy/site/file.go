package site

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs"
)

// fileSettings are the directives that name folders of files. None is served here, but for single pages that an exact
// location names; so they must not be able to take effect anywhere else.
type fileSettings struct {
	root *topology.Node // nil: none was said
}

func setRoot(l *level, n *topology.Node) {
	if l.once(n) && l.args(n, 1, 1) {
		l.settings().core.file.root = n
	}
}

func setAlias(l *level, n *topology.Node) {
	l.problem(n, "files are not served here", "proxy_pass or return; a server that serves files behind it")
}

// setIndex says which file a folder shows: without root there is none.
func setIndex(l *level, n *topology.Node) { l.args(n, 1, -1) }

// checkFiles finds the locations of a server in which a root that was said would serve files.
func (c *compiler) checkFiles(s *server) {
	s.inner.each(func(loc *location) { c.checkFilesOf(loc) })
	for _, loc := range s.named {
		c.checkFilesOf(loc)
	}
	if root := s.set.core.file.root; root != nil && s.inner.static.root() == nil && !s.code.ends() {
		c.problem(root, "files are not served here: a path that no location takes would be looked for in "+quote(root.Args[0]),
			"a location / with proxy_pass or return")
	}
}

func (c *compiler) checkFilesOf(loc *location) {
	root := loc.set.core.file.root
	if root == nil || loc.code.ends() {
		return
	}
	if e := loc.except; e != nil && e.set.handler == nil && !e.set.access.deniesAll() {
		c.problem(e.node, fmt.Sprintf("files are not served here, and root %s would serve them in location %q", root.Args[0], loc.name),
			"deny all or proxy_pass in limit_except")
	}
	switch {
	case loc.set.access.deniesAll():
		return
	case loc.set.handler != nil && loc.set.core.tryFiles != nil:
		c.problem(loc.node, fmt.Sprintf("files are not served here, and try_files would look for them in root %s in location %q", root.Args[0], loc.name),
			"the location without try_files, or without root around it")
		return
	case loc.set.handler != nil:
		return
	}
	if loc.form == formExact && loc.set.core.tryFiles == nil && !strings.HasSuffix(loc.name, "/") {
		c.servePage(loc, root.Args[0])
		return
	}
	c.problem(loc.node, fmt.Sprintf("files are not served here, and root %s would serve them in location %q", root.Args[0], loc.name),
		"proxy_pass or return in the location, or location = /page.html for a single page")
}

// servePage makes an exact location answer with one file, read now. Where there is no such file, as with the stock
// page on a machine without nginx, it answers with the page of our own for the status.
func (c *compiler) servePage(loc *location, root string) {
	read := c.options.ReadFile
	if read == nil {
		read = certs.ReadRegular
	}
	if !filepath.IsAbs(root) {
		prefix := c.options.Prefix
		if prefix == "" {
			prefix = "/etc/nginx"
		}
		root = filepath.Join(prefix, root)
	}
	page, err := read(filepath.Join(root, filepath.FromSlash(loc.name)))
	if err != nil {
		loc.set.handler = (*request).ownPageInstead
		return
	}
	text := string(page)
	loc.set.handler = func(r *request, _ context.Context) outcome {
		switch string(r.method) {
		case "GET", "HEAD":
			return r.local(200, text)
		}
		return fail(405)
	}
}

func (r *request) ownPageInstead(context.Context) outcome {
	if r.errStatus == 0 {
		return fail(404)
	}
	return r.ownPage(outcome{what: failed, status: r.errStatus})
}

// each calls f for every location with a path, nested ones included.
func (ls *locations) each(f func(*location)) {
	visit := func(loc *location) {
		if loc != nil {
			f(loc)
			loc.inner.each(f)
		}
	}
	ls.static.each(func(t *tree) {
		visit(t.exact)
		visit(t.prefix)
	})
	for _, loc := range ls.regexes {
		visit(loc)
	}
}

func (t *tree) each(f func(*tree)) {
	f(t)
	for _, child := range t.children {
		child.each(f)
	}
}

// root is the location that takes every path, nil without one.
func (t *tree) root() *location {
	if t.prefix != nil {
		return t.prefix
	}
	for _, child := range t.children {
		if child.label == "/" {
			return child.prefix
		}
	}
	return nil
}
