package confgen

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/upstrand/upstrand/confgen/declared"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// readDeclared takes over the files of the registry. What can't be read leaves all of the declared part as it was: half of
// it could lead requests anywhere. Whoever declared it was told, so that should not happen.
func (b *book) readDeclared(d registry.Declaration) {
	if d.Revision > 0 && d.Revision == b.read {
		return
	}
	set := declared.Read(Files(d.Files))
	b.unread = nil
	if len(set.Faults) > 0 {
		b.unread = []Note{{Kind: NoteBadDeclared, Text: fmt.Sprintf("revision %d of the declared topology can't be read, so what was before stays: %v", d.Revision, set.Faults[0])}}
		return
	}
	b.read, b.cause = d.Revision, ""
	if d.Revision > 0 {
		b.cause = d.Last.Cause()
	}
	b.declare(set.Config)
}

// Files is declared files in the form that package declared reads.
func Files(files []registry.DeclaredFile) []declared.File {
	out := make([]declared.File, len(files))
	for i, f := range files {
		out[i] = declared.File{Name: f.Name, Text: f.Text}
	}
	return out
}

// declare takes over what is declared; nil: nothing. It is published by the next rebuild.
func (b *book) declare(c *topology.Config) {
	next := newDeclaration(c)
	for service := range b.declared.touched(next) {
		if _, kept := next.kept[service]; kept {
			b.service(service)
		}
		if b.services[service] != nil {
			b.dirty[service] = true
		}
	}
	moved := unequal(b.declared.routes, next.routes)
	for name, s := range b.services {
		if slices.ContainsFunc(s.paths, func(path string) bool { return moved[topology.RouteKey("", path)] }) {
			b.dirty[name] = true
		}
	}
	b.declared, b.redeclared = next, true
}

// primeDeclared takes over the declared part of what was published last.
func (b *book) primeDeclared(c *topology.Config) {
	old := &topology.Config{}
	for _, u := range c.Upstreams {
		if u.Origin == topology.Declared {
			old.Upstreams = append(old.Upstreams, u)
		}
	}
	for _, u := range c.Upstrands {
		if u.Origin == topology.Declared {
			old.Upstrands = append(old.Upstrands, u)
		}
	}
	for _, r := range c.Routes {
		if r.Origin == topology.Declared {
			old.Routes = append(old.Routes, r)
		}
	}
	b.declare(old)
	b.published, _ = encodeDeclared(old, old.Routes)
}

// encodeDeclared leaves out what can't be encoded, and tells.
func encodeDeclared(c *topology.Config, routes []topology.Route) (map[string][]byte, []Note) {
	e := encoding{records: map[string][]byte{}}
	keep(&e, NoteBadDeclared, slices.Clone(c.Upstreams), topology.EncodeUpstream)
	keep(&e, NoteBadDeclared, slices.Clone(c.Upstrands), topology.EncodeUpstrand)
	keep(&e, NoteBadDeclared, slices.Clone(routes), topology.EncodeRoute)
	return e.records, e.notes
}

// routes are the declared ones with their targets as of the last rebuild.
func (b *book) routes() []topology.Route {
	return b.declared.led(func(service string) bool {
		s := b.services[service]
		return s != nil && len(s.derived.upstrands) > 0
	})
}

// putDeclared publishes the declared part. Its place is between what goes and what comes of the derived one, since either
// may take over a key of the other.
func (b *book) putDeclared(set func(key string, value []byte)) {
	if !b.redeclared && !b.declared.moves {
		return
	}
	records, notes := encodeDeclared(b.declared.config, b.routes())
	if b.cause != "" && !maps.EqualFunc(records, b.published, bytes.Equal) {
		b.causes.add("declared topology:", "", b.cause)
	}
	for _, key := range slices.Sorted(maps.Keys(b.published)) {
		if _, stays := records[key]; !stays {
			set(key, nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(records)) {
		set(key, records[key])
	}
	b.published, b.refusedDeclared, b.redeclared, b.cause = records, notes, false, ""
}
