package confgen

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/upstrand/upstrand/confgen/declared"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
)

// TestScenarios runs testdata/*.txt: a block of commands, a line "----", and what came of it, up to an empty line.
//
//	service NAME | -service NAME          a row of the registry
//	instance SERVICE/ID ADDR [dense=N] [key=value…] [stale|left|superseded|unproven|draining]
//	claim PATH SERVICE [at=N] | -claim PATH
//	declare upstream|upstrand NAME DIRECTIVE…; DIRECTIVE…     (before anything else)
//	declare route HOST|- PATH UPSTREAM
//	file NAME TEXT | -file NAME         a declared file is applied, or goes
//
// Each block is applied as one change, and what the incremental book then has is compared with Build over everything.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScenario(t, string(data))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), got); diff != "" {
				t.Errorf("differs (-want +got); look, then run with -rewrite:\n%s", diff)
			}
		})
	}
}

type scenario struct {
	declared  topology.Config
	book      *book
	instances map[string]registry.Instance
	services  map[string]bool
	claims    map[string]registry.RouteClaim
	dense     int64
	change    registry.Snapshot
	files     map[string]registry.DeclaredFile
	applied   int64 // revision of the declared files
}

func runScenario(t *testing.T, text string) string {
	s := &scenario{instances: map[string]registry.Instance{}, services: map[string]bool{}, claims: map[string]registry.RouteClaim{}, files: map[string]registry.DeclaredFile{}}
	var out strings.Builder
	inOutput := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case inOutput:
			inOutput = trimmed != ""
		case trimmed == "----":
			out.WriteString(line)
			s.build(t, &out)
			out.WriteString("\n")
			inOutput = true
		default:
			out.WriteString(line)
			if trimmed != "" && !strings.HasPrefix(trimmed, "#") {
				if err := s.command(strings.Fields(trimmed)); err != nil {
					t.Fatalf("%s: %v", trimmed, err)
				}
			}
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func (s *scenario) command(f []string) error {
	switch f[0] {
	case "service":
		s.services[f[1]] = true
		s.change.Services = append(s.change.Services, registry.Service{Name: f[1]})
	case "-service":
		delete(s.services, f[1])
		s.change.RemovedServices = append(s.change.RemovedServices, f[1])
	case "claim":
		c := registry.RouteClaim{Path: f[1], Service: f[2]}
		if len(f) > 3 {
			c.ClaimedAt, _ = strconv.ParseInt(strings.TrimPrefix(f[3], "at="), 10, 64)
		}
		s.claims[c.Path] = c
		s.change.Claims = append(s.change.Claims, c)
	case "-claim":
		delete(s.claims, f[1])
		s.change.RemovedClaims = append(s.change.RemovedClaims, f[1])
	case "instance":
		in, err := s.instance(f[1:])
		if err != nil {
			return err
		}
		s.instances[f[1]] = in
		s.change.Instances = append(s.change.Instances, in)
	case "declare":
		return s.declare(f[1:])
	case "file", "-file":
		s.apply(registry.DeclaredFile{Name: f[1], Text: strings.Join(f[2:], " "), Deleted: f[0] == "-file"})
	default:
		return fmt.Errorf("unknown command")
	}
	return nil
}

func (s *scenario) instance(f []string) (registry.Instance, error) {
	service, id, _ := strings.Cut(f[0], "/")
	in, known := s.instances[f[0]]
	if !known {
		s.dense++
		in = registry.Instance{DenseID: s.dense, Service: service, ID: id, Status: registry.StatusUp,
			Attrs: registry.Attrs{Scheme: "http", Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second}}
	}
	in.Liveness, in.Status = registry.Live, registry.StatusUp
	host, port, err := splitAddr(f[1])
	if err != nil {
		return in, err
	}
	in.Attrs.IP, in.Attrs.Port = host, port
	for _, arg := range f[2:] {
		key, value, _ := strings.Cut(arg, "=")
		n, _ := strconv.Atoi(value)
		d, _ := time.ParseDuration(value)
		switch key {
		case "dense":
			in.DenseID = int64(n)
		case "weight":
			in.Attrs.Weight = n
		case "max_conns":
			in.Attrs.MaxConns = n
		case "max_fails":
			in.Attrs.MaxFails = n
		case "fail_timeout":
			in.Attrs.FailTimeout = d
		case "slow_start":
			in.Attrs.SlowStart = d
		case "zone":
			in.Attrs.Zone = value
		case "version":
			in.Attrs.Version = value
		case "tags":
			in.Attrs.Tags = strings.Split(value, ",")
		case "scheme":
			in.Attrs.Scheme = value
		case "incarnation":
			in.Incarnation = int64(n)
		case "stale", "left", "superseded", "unproven":
			in.Liveness = registry.Liveness(key)
		case "draining":
			in.Status = registry.StatusDraining
		default:
			return in, fmt.Errorf("unknown %q", key)
		}
	}
	return in, nil
}

// splitAddr keeps a broken address as it is, so that a scenario can have one.
func splitAddr(s string) (string, int, error) {
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		return s, 80, nil
	}
	return ap.Addr().String(), int(ap.Port()), nil
}

func (s *scenario) declare(f []string) error {
	if s.book != nil {
		return fmt.Errorf("too late")
	}
	var lines []topology.Directive
	for _, part := range strings.Split(strings.Join(f[2:], " "), ";") {
		if fields := strings.Fields(part); len(fields) > 0 {
			lines = append(lines, fields)
		}
	}
	switch f[0] {
	case "upstream":
		s.declared.Upstreams = append(s.declared.Upstreams, topology.Upstream{Name: f[1], Origin: topology.Declared, Rank: len(s.declared.Upstreams), Directives: lines})
	case "upstrand":
		s.declared.Upstrands = append(s.declared.Upstrands, topology.Upstrand{Name: f[1], Origin: topology.Declared, Rank: len(s.declared.Upstrands), Directives: lines})
	case "route":
		s.declared.Routes = append(s.declared.Routes, topology.Route{Host: strings.Trim(f[1], "-"), Path: f[2], Origin: topology.Declared, Upstream: f[3]})
	}
	return nil
}

// apply changes a declared file, as registry.Store.Declare does.
func (s *scenario) apply(f registry.DeclaredFile) {
	s.applied++
	f.Revision, f.Author = s.applied, "ops"
	if s.files[f.Name] = f; f.Deleted {
		delete(s.files, f.Name)
	}
	d := &registry.Declaration{Revision: s.applied, Last: f}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		d.Files = append(d.Files, s.files[name])
	}
	s.change.Declared = d
	if set := declared.Read(Files(d.Files)); len(set.Faults) == 0 {
		s.declared = *set.Config
	}
}

func (s *scenario) build(t *testing.T, out *strings.Builder) {
	t.Helper()
	var changed []string
	if s.book == nil {
		s.book = newBook(nil)
		if s.applied == 0 {
			s.book = newBook(&s.declared)
		}
	}
	s.book.apply(s.change)
	s.change = registry.Snapshot{}
	changed = append(changed, s.book.rebuild()...)
	slices.Sort(changed)
	fmt.Fprintf(out, "cause: %s\n", s.book.causes.take())
	for _, n := range s.book.notes() {
		fmt.Fprintf(out, "note: %s %s %s: %s\n", n.Kind, n.Service, n.ID, n.Text)
	}
	for _, key := range slices.Compact(changed) {
		if value, ok := s.book.want.records[key]; ok {
			fmt.Fprintf(out, "%s %s\n", key, value)
		} else {
			fmt.Fprintf(out, "%s gone\n", key)
		}
	}
	fmt.Fprintf(out, "digest %s of %d\n", s.book.want.digest.String()[:16], len(s.book.want.records))
	s.compareWithBuild(t)
}

// compareWithBuild checks that the incremental book has come to what Build says, in another order of the input.
func (s *scenario) compareWithBuild(t *testing.T) {
	t.Helper()
	in := Input{Declared: &s.declared}
	for _, i := range s.instances {
		in.Instances = append(in.Instances, i)
	}
	for name := range s.services {
		in.Services = append(in.Services, registry.Service{Name: name})
	}
	for _, c := range s.claims {
		in.Claims = append(in.Claims, c)
	}
	output := Build(in)
	records, err := topology.Encode(output.Config)
	if err != nil {
		t.Fatalf("what was built can't be encoded: %v", err)
	}
	if diff := cmp.Diff(s.book.want.records, recordMap(records)); diff != "" {
		t.Errorf("Build differs from the incremental form (-incremental +build):\n%s", diff)
	}
	notes := slices.DeleteFunc(s.book.notes(), func(n Note) bool { return slices.Contains(s.book.unread, n) }) // Build is given what was read
	if diff := cmp.Diff(notes, output.Notes, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("notes differ:\n%s", diff)
	}
	if topology.DigestOf(records) != s.book.want.digest {
		t.Error("the digest drifted")
	}
}

func recordMap(records []topology.Record) map[string][]byte {
	m := map[string][]byte{}
	for _, r := range records {
		m[r.Key] = r.Value
	}
	return m
}
