package simulate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/deploy/conformance"
	"github.com/upstrand/upstrand/proxy"
)

// read reads a configuration that is one text.
func read(name, text string) (*proxy.File, error) {
	doc, faults := dialect.Read(name, dialect.Options{ReadFile: func(path string) ([]byte, error) {
		if path != name {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return []byte(text), nil
	}})
	var errs []error
	for _, f := range faults {
		errs = append(errs, f)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &proxy.File{Name: name, Config: doc.Config, Site: doc.Site, Resolver: doc.Resolver, Fault: doc.Fault}, nil
}

// file is a configuration that must be readable.
func file(t *testing.T, text string) *proxy.File {
	t.Helper()
	f, err := read("test.conf", text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func readConf(v *conformance.Vector) (*proxy.File, error) {
	return read("test.conf", v.File("/logs", false))
}

// checked is a case that only looks at a configuration: accepted is what can be put in force.
func checked(v *conformance.Vector, ours conformance.Ours) []string {
	err := accepted(v)
	if want := ours.Accepted(v); (err == nil) != want {
		return []string{fmt.Sprintf("configuration accepted: want %v, got: %v", want, err)}
	}
	return nil
}

func accepted(v *conformance.Vector) error {
	f, err := readConf(v)
	if err != nil {
		return err
	}
	p, err := newWorld(1).proxy(nil)
	if err != nil {
		return err
	}
	_, err = p.Check(f)
	var faults proxy.Faults
	if errors.As(err, &faults) && !slices.ContainsFunc(faults, func(f topology.Fault) bool { return !f.NotBuilt }) {
		err = nil // no mistake, though it can't be served yet
	}
	return errors.Join(err, p.Shutdown(context.Background()))
}
