package plan

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/registry"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/*.txt anew; look at the difference before you keep it")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScenarios runs testdata/*.txt: commands, a line "----", and what the plan is, up to an empty line.
//
//	service NAME | -service NAME
//	instance SERVICE/ID ADDR [zone=…] [version=…] [tag=…] | -instance SERVICE/ID
//	claim PATH SERVICE
//	apply NAME, then the file's lines, indented | delete NAME
//	force NAME, then lines: they come into force whatever is wrong with them, as under an older release
//
// What has no fault comes into force.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(data))
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

type scene struct {
	snap   registry.Snapshot
	next   []registry.DeclaredFile
	forced bool
	text   *registry.DeclaredFile // whose lines come
}

func play(t *testing.T, text string) string {
	s := &scene{snap: registry.Snapshot{Declared: &registry.Declaration{}}}
	var out strings.Builder
	inOutput := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if inOutput {
			inOutput = trimmed != ""
			continue
		}
		out.WriteString(line)
		switch {
		case trimmed == "----":
			s.plan(&out)
			out.WriteString("\n")
			inOutput = true
		case s.text != nil && strings.HasPrefix(line, "  "):
			s.text.Text += strings.TrimPrefix(line, "  ")
		case trimmed != "" && !strings.HasPrefix(trimmed, "#"):
			if err := s.command(strings.Fields(trimmed)); err != nil {
				t.Fatalf("%s: %v", trimmed, err)
			}
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func (s *scene) command(f []string) error {
	switch f[0] {
	case "service":
		s.snap.Services = append(s.snap.Services, registry.Service{Name: f[1]})
	case "-service":
		s.snap.Services = slices.DeleteFunc(s.snap.Services, func(v registry.Service) bool { return v.Name == f[1] })
	case "claim":
		s.snap.Claims = append(s.snap.Claims, registry.RouteClaim{Path: f[1], Service: f[2]})
	case "instance":
		return s.instance(f[1:])
	case "-instance":
		s.snap.Instances = slices.DeleteFunc(s.snap.Instances, func(in registry.Instance) bool { return in.Service+"/"+in.ID == f[1] })
	case "apply", "force", "delete":
		s.next = slices.DeleteFunc(slices.Clone(s.snap.Declared.Files), func(d registry.DeclaredFile) bool { return d.Name == f[1] })
		if s.forced = f[0] == "force"; f[0] != "delete" {
			s.next = append(s.next, registry.DeclaredFile{Name: f[1]})
			s.text = &s.next[len(s.next)-1]
		}
	default:
		return fmt.Errorf("unknown command")
	}
	return nil
}

func (s *scene) instance(f []string) error {
	service, id, _ := strings.Cut(f[0], "/")
	addr, err := netip.ParseAddrPort(f[1])
	if err != nil {
		return err
	}
	in := registry.Instance{DenseID: int64(len(s.snap.Instances) + 1), Service: service, ID: id, Status: registry.StatusUp, Liveness: registry.Live,
		Attrs: registry.Attrs{Scheme: "http", IP: addr.Addr().String(), Port: int(addr.Port()), Weight: 1, MaxFails: 1, FailTimeout: 10 * time.Second}}
	for _, arg := range f[2:] {
		switch key, value, _ := strings.Cut(arg, "="); key {
		case "zone":
			in.Attrs.Zone = value
		case "version":
			in.Attrs.Version = value
		case "tag":
			in.Attrs.Tags = append(in.Attrs.Tags, value)
		default:
			return fmt.Errorf("unknown %q", key)
		}
	}
	s.snap.Instances = append(s.snap.Instances, in)
	return nil
}

func (s *scene) plan(out *strings.Builder) {
	before := *s.snap.Declared
	p := Make(s.snap, s.next)
	for _, f := range p.Faults {
		fmt.Fprintln(out, "fault", f.Error())
	}
	for _, f := range p.Warnings {
		fmt.Fprintln(out, "warning", f.Error())
	}
	for _, c := range p.Changes {
		fmt.Fprintf(out, "%s %s %s: %s → %s\n", c.Kind, c.Name, c.What(), sideText(c.Kind, c.Before), sideText(c.Kind, c.After))
	}
	if len(p.Faults) == 0 {
		fmt.Fprintf(out, "%s; %d records\n", Summary(p.Changes), p.Records)
	}
	if len(p.Faults) == 0 || s.forced {
		s.snap.Declared = &registry.Declaration{Revision: before.Revision + 1, Files: s.next}
	}
	s.text = nil
}

func sideText(k Kind, s *Side) string {
	if s == nil {
		return "none"
	}
	text := fmt.Sprintf("%s {%s}", s.Origin, strings.Join(s.Lines, " "))
	if k == Upstream {
		text += fmt.Sprintf(" of %d", s.Peers)
	}
	return text
}
