package dialect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/upstrand/upstrand/confgen/topology"
)

// The bounds of one file.
const (
	maxFile     = 8 << 20 // bytes
	maxIncludes = 16      // files that include each other in a row
)

// bounds are those of all files together; each counts as often as it is included.
type bounds struct {
	files, bytes, directives int
}

var most = bounds{files: 2000, bytes: 8 * maxFile, directives: 1 << 20}

// Options is where files come from. The zero value is the machine's own.
type Options struct {
	ReadFile func(name string) ([]byte, error)      // nil: the function of that name
	Glob     func(pattern string) ([]string, error) // nil: filepath.Glob
}

func (o Options) readFile(name string) ([]byte, error) {
	if o.ReadFile != nil {
		return o.ReadFile(name)
	}
	return ReadFile(name)
}

// ReadFile reads a regular file of the machine, and no more of it than a configuration may have: it ends with any file. A
// pipe nobody writes to would hold up this reload and all behind it.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // so that a pipe can be opened, and refused
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("is no regular file, but a pipe or a device")}
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // one more byte tells that there is more
}

func (o Options) glob(pattern string) ([]string, error) {
	if o.Glob != nil {
		return o.Glob(pattern)
	}
	return filepath.Glob(pattern)
}

// load reads a file and all that it includes. A fault of the reading ends that file; all before it is kept.
func (r *reader) load(name string, from *topology.Node, row []string) []*topology.Node {
	if r.reads.files++; r.reads.files > r.most.files && from != nil {
		r.fault(from, "too many files are included", fmt.Sprintf("%d", r.most.files))
		return nil
	}
	r.remember(name)
	text, err := r.opts.readFile(name)
	if err != nil {
		r.lost(name, from, err)
		return nil
	}
	if len(text) > maxFile {
		r.add(topology.Fault{File: name, Reason: "is too large", Allowed: fmt.Sprintf("%d bytes", maxFile)})
		return nil
	}
	if r.reads.bytes += len(text); r.reads.bytes > r.most.bytes {
		r.add(topology.Fault{File: name, Reason: "all files together are too large", Allowed: fmt.Sprintf("%d bytes", r.most.bytes)})
		return nil
	}
	if f := checkText(name, text); f != nil {
		r.add(*f)
		return nil
	}
	nodes, size, fault := build(name, blankCode(text), r.most.directives-r.reads.directives)
	r.reads.directives += size
	if fault != nil {
		r.add(*fault)
		r.doc.cut = true
	}
	return r.include(nodes, append(row, name))
}

// lost says that a file can't be read. An absent mime.types is no fault: a machine without nginx has none.
func (r *reader) lost(name string, from *topology.Node, err error) {
	switch {
	case from == nil:
		r.add(topology.Fault{File: name, Reason: reasonOf(err)})
	case errors.Is(err, fs.ErrNotExist) && path.Base(filepath.ToSlash(name)) == "mime.types":
		r.notice(from, "no such file: types are those that nginx has by itself (html, gif, jpg)")
	default:
		r.fault(from, name+": "+reasonOf(err), "a file that can be read, or a pattern with * that may match none")
	}
}

func reasonOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func (r *reader) remember(name string) {
	if !r.known[name] {
		r.known[name] = true
		r.doc.Files = append(r.doc.Files, name)
	}
}

// include puts the content of included files into the place of the lines that name them.
func (r *reader) include(nodes []*topology.Node, row []string) []*topology.Node {
	out := make([]*topology.Node, 0, len(nodes))
	for _, n := range nodes {
		if n.Name != "include" || n.HasBlock {
			if n.HasBlock {
				n.Block = r.include(n.Block, row)
			}
			out = append(out, n)
			continue
		}
		out = append(out, r.included(n, row)...)
	}
	return out
}

func (r *reader) included(n *topology.Node, row []string) []*topology.Node {
	if len(n.Args) != 1 || n.Args[0] == "" {
		r.fault(n, "want one file or pattern", "include FILE; include FOLDER/*.conf")
		return nil
	}
	if strings.Contains(n.Args[0], "${") {
		r.fault(n, "this is a template ("+clip(n.Args[0])+"): it must be rendered first", "")
		return nil
	}
	pattern := n.Args[0]
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(r.base, pattern)
	}
	pattern = filepath.Clean(pattern) // else a file could include itself by another name
	names := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		var err error
		if names, err = r.opts.glob(pattern); err != nil {
			r.fault(n, "bad pattern: "+err.Error(), "")
			return nil
		}
		slices.Sort(names)
		r.remember(filepath.Dir(pattern))
		if len(names) == 0 {
			r.notice(n, "no file matches "+pattern)
		}
	}
	var out []*topology.Node
	for _, name := range names {
		switch {
		case slices.Contains(row, name):
			r.fault(n, name+" includes itself", "")
		case len(row) >= maxIncludes:
			r.fault(n, "files include each other too deep", fmt.Sprintf("%d", maxIncludes))
		default:
			out = append(out, r.load(name, n, row)...)
		}
	}
	return out
}
