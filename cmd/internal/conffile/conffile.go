// Package conffile brings a configuration file in nginx's syntax to those that serve, check, explain and simulate it:
// it has package dialect read it, and collects what is wrong with it and what of it has no meaning here.
//
// It knows no directive.
package conffile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/accesslog"
)

// File is what was read. With faults Use holds what is left.
type File struct {
	Use     *proxy.File
	Notices []topology.Fault
	Read    []string // every file that was read, and the folders in which other files may turn up
}

// Read reads a file and all that it includes. Published tells that a topology is published beside it. The error is a
// proxy.Faults with everything that is wrong, also with what is right and not built yet; Read and Notices hold also then.
func Read(path string, published bool) (*File, error) {
	f, faults := read(path, published, dialect.Options{})
	return whole(f, serves(f, faults))
}

// Part is Read for a file that need not serve anything, such as one with upstreams alone.
func Part(path string) (*File, error) { return whole(read(path, false, dialect.Options{})) }

// whole adds what is wrong beyond the syntax when something is wrong already, and what can't be served.
func whole(f *File, faults proxy.Faults) (*File, error) {
	if len(faults) > 0 {
		_, more, err := compile(f, nowhere)
		if err != nil {
			return f, err
		}
		return f, merged(faults, more)
	}
	if _, later := notBuilt(f.Notices); later != nil {
		return f, proxy.Faults(later)
	}
	return f, nil
}

func read(path string, published bool, from dialect.Options) (*File, proxy.Faults) {
	doc, faults := dialect.Read(path, from)
	f := &File{Notices: doc.Notices, Read: doc.Files, Use: &proxy.File{
		Name: path, Config: doc.Config, Site: doc.Site, Resolver: doc.Resolver, Published: published, Fault: doc.Fault,
	}}
	return f, faults
}

// serves adds a fault to a file that is right as far as it goes and has no server.
func serves(f *File, faults proxy.Faults) proxy.Faults {
	if len(faults) == 0 && !slices.ContainsFunc(f.Use.Site, func(n *topology.Node) bool { return n.Name == "server" }) {
		faults = append(faults, nothing(f.Use.Name))
	}
	return faults
}

// nothing is the fault of a file that takes no traffic: an empty one, or what is left of one that is being written. Put in
// force, it would close every door.
func nothing(path string) topology.Fault {
	return topology.Fault{File: path, Line: 1, Reason: "has no server block, so nothing would be served", Allowed: "server { listen …; … }"}
}

// Check reads a file and looks at all that can be looked at without touching anything: every name counts as that of a
// host, and no log is opened, but whether it could be is looked at. What is right and not built yet is a notice.
func Check(path string, published bool) (*File, error) {
	return check(read(path, published, dialect.Options{}))
}

// CheckText is Check of a text that is in no file; faults name it as given. What it includes is in files.
func CheckText(name string, text []byte) (*File, error) {
	return check(read(name, false, dialect.Options{ReadFile: func(path string) ([]byte, error) {
		if path == name {
			return text, nil
		}
		return dialect.ReadFile(path)
	}}))
}

func check(f *File, faults proxy.Faults) (*File, error) {
	faults = serves(f, faults)
	warnings, more, err := compile(f, probed)
	if err != nil {
		return f, err
	}
	wrong, later := notBuilt(merged(faults, more))
	f.Notices = append(append(f.Notices, warnings...), later...)
	if wrong != nil {
		return f, wrong
	}
	return f, nil
}

// notBuilt tells what is wrong from what is right and not carried out in this version.
func notBuilt(faults []topology.Fault) (wrong proxy.Faults, later []topology.Fault) {
	for _, fault := range faults {
		if fault.NotBuilt {
			later = append(later, fault)
		} else {
			wrong = append(wrong, fault)
		}
	}
	return wrong, later
}

// compile gives what is wrong beyond the syntax. It also looks at what is left of a file that has faults already, so that
// all are told at once.
func compile(f *File, log func(string) (io.WriteCloser, error)) (warnings []topology.Fault, faults proxy.Faults, err error) {
	p, err := proxy.New(proxy.Config{Lookup: Placeholder, Logs: &accesslog.Files{Opener: log}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, p.Shutdown(context.Background())) }()
	warnings, err = p.Check(f.Use)
	if errors.As(err, &faults) {
		err = nil
	}
	return warnings, faults, err
}

// merged is all faults by their places, each once.
func merged(a, b proxy.Faults) proxy.Faults {
	all := append(slices.Clone(a), b...)
	slices.SortStableFunc(all, func(x, y topology.Fault) int {
		return cmp.Or(strings.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line))
	})
	return slices.Compact(all)
}

// Usable is nil when Check finds nothing that keeps a proxy from serving the file; else it has a line for each fault.
func Usable(path string, published bool) error {
	f, err := Check(path, published)
	var faults proxy.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	_, later := notBuilt(f.Notices)
	switch faults = append(faults, later...); len(faults) {
	case 0:
		return nil
	case 1:
		return faults
	}
	return fmt.Errorf("%d faults:\n    %s", len(faults), strings.ReplaceAll(faults.Error(), "\n", "\n    "))
}

// nobody takes what is written to a log that is not there.
type nobody struct{ io.Writer }

func (nobody) Close() error { return nil }

func nowhere(string) (io.WriteCloser, error) { return nobody{io.Discard}, nil }

// probed is nowhere for a log that could be opened.
func probed(path string) (io.WriteCloser, error) { return nobody{io.Discard}, accesslog.Probe(path) }

// Placeholder gives every name an address that nobody has, so that a file can be looked at without asking for it.
func Placeholder(string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{240, 0, 0, 1})}, nil
}

// Summary is an error about a file with all its faults.
func Summary(path string, err error) error {
	n := strings.Count(err.Error(), "\n") + 1
	if n == 1 {
		if strings.HasPrefix(err.Error(), path+":") {
			return err // it says the file and the line
		}
		return fmt.Errorf("%s can't be used: %w", path, err)
	}
	return fmt.Errorf("%s can't be used, %d faults:\n%w", path, n, err)
}
