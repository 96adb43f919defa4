package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/registry/api"
	"github.com/upstrand/upstrand/registry/registrytest"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files in testdata anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fleet is a registry that has the fleet, and its database.
func fleet(t *testing.T) (*httptest.Server, *sqlx.DB) {
	t.Helper()
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	h, err := api.New(api.Config{Store: s, Declarer: s, Now: registrytest.Now, EventPoll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return server, db
}

// command runs a command line against a registry.
func command(ctx context.Context, out, errs io.Writer, registry, line string) error {
	root := &cobra.Command{Use: "upstrand", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetArgs(append(strings.Fields(line), "--registry", registry))
	root.SetOut(out)
	root.SetErr(errs)
	return root.ExecuteContext(ctx)
}

func TestOutputIsAsWrittenDown(t *testing.T) {
	server, _ := fleet(t)
	for name, line := range map[string]string{
		"service_ls":          "service ls",
		"service_ls_empty":    "service ls --state empty --prefix b",
		"service_ls_json":     "service ls --limit 1 -o json",
		"service_show":        "service show orders",
		"service_show_empty":  "service show web",
		"service_show_json":   "service show billing -o json",
		"instance_ls":         "instance ls",
		"instance_ls_filter":  "instance ls orders --zone= --limit 1",
		"instance_ls_filters": "instance ls --service orders,billing --liveness live,stale --tag canary --status up",
		"instance_ls_json":    "instance ls --liveness stale --limit 1 -o json",
		"instance_show":       "instance show orders/a1",
		"instance_show_ipv6":  "instance show orders a6",
		"instance_unproven":   "instance show orders/a3",
		"instance_show_json":  "instance show orders/a2 -o json",
		"topology_show":       "topology show",
		"topology_show_old":   "topology show --version 41 --prefix service/",
		"topology_show_json":  "topology show --prefix route/ -o json",
		"topology_versions":   "topology versions --limit 2",
		"topology_versions_j": "topology versions --limit 1 -o json",
		"agent_ls":            "agent ls",
		"agent_ls_json":       "agent ls --limit 2 -o json",
		"event_ls":            "event ls",
		"event_ls_filter":     "event ls --service orders --kind stale,left --limit 0",
		"event_ls_json":       "event ls --limit 2 -o json",
		"stream_ls":           "stream ls",
		"stream_ls_json":      "stream ls -o json",
		"rejected_ls":         "rejected ls",
		"rejected_ls_filter":  "rejected ls --reason not_json --partition 1 --limit 1",
		"rejected_ls_json":    "rejected ls --limit 1 -o json",
		"unknown_service":     "service show ordesr",
		"unknown_instance":    "instance show orders/zz",
		"unknown_liveness":    "instance ls --liveness dead,live",
		"bad_name":            "instance show orders",
		"bad_output":          "instance ls -o yaml",
		"bad_version":         "topology show --version 7",
		"bad_limit":           "event ls --limit -1",
		"bad_since":           "event ls --since -5m",
		"unknown_kind":        "event ls --kind nope",
		"unknown_reason":      "rejected ls --reason nonsense",
		"unknown_prefix":      "topology show --prefix foo",
		"unknown_service_ls":  "instance ls nope",
		"no_name":             "service show",
		"stray_word":          "topology show 3",
		"stray_command":       "service list",
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if err := command(t.Context(), &out, &errs, server.URL, line); err != nil {
				fmt.Fprintln(&out, "error:", err)
			}
			text := "$ upstrand " + line + "\n" + out.String() + errs.String()
			golden(t, name+".txt", text)
		})
	}
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -rewrite makes it)", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func TestNothingThatATerminalActsUponIsPrinted(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(text, func(b byte) bool { return b < ' ' && b != '\n' || b == 0x7f }); i >= 0 {
			t.Errorf("%s has byte %#x at %d", file, text[i], i)
		}
	}
}

func TestJSONIsWhatTheAPISays(t *testing.T) {
	server, _ := fleet(t)
	for line, path := range map[string]string{
		"service ls": "services", "service show orders": "services/orders", "instance ls": "instances", "instance show orders/a1": "instances/orders/a1",
		"topology show": "topology", "topology versions": "topology/versions", "agent ls": "agents", "stream ls": "streams",
	} {
		var out, errs bytes.Buffer
		if err := command(t.Context(), &out, &errs, server.URL, line+" -o json"); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		res, err := server.Client().Get(server.URL + "/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.NewDecoder(res.Body).Decode(&want); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-api +command):\n%s", line, diff)
		}
	}
}

// lines passes on what is written line by line.
type lines struct {
	rest []byte
	to   chan string
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		l.to <- string(line)
	}
}

func TestEventsAreFollowedUntilInterrupted(t *testing.T) {
	for _, format := range []string{"table", "json"} {
		t.Run(format, func(t *testing.T) {
			server, db := fleet(t)
			ctx, interrupt := context.WithCancel(t.Context())
			out, done := &lines{to: make(chan string)}, make(chan error, 1)
			go func() {
				done <- command(ctx, out, io.Discard, server.URL, "event ls --follow --limit 2 --kind stale,joined -o "+format)
			}()
			heads := []string{"TIME                         SEQ     KIND", "a4", "b1"}
			if format == "json" {
				heads = heads[1:]
			}
			for _, want := range heads {
				if line := <-out.to; !strings.Contains(line, want) {
					t.Errorf("%s, want %s", line, want)
				}
			}
			registrytest.Insert(t, db, "event", registrytest.Row{"seq": 108, "kind": "left", "service": "orders", "iid": "no"})
			registrytest.Insert(t, db, "event", registrytest.Row{"seq": 109, "kind": "joined", "service": "orders", "iid": "new\x1b[31m"})
			line := <-out.to
			if !strings.Contains(line, "orders") || !strings.Contains(line, "109") || strings.Contains(line, "\x1b") {
				t.Errorf("%q", line)
			}
			if format == "json" && !json.Valid([]byte(line)) {
				t.Errorf("%q is no JSON", line)
			}
			interrupt()
			if err := <-done; err != nil {
				t.Errorf("interrupted: %v", err)
			}
		})
	}
}

func TestFollowingGoesOnWhenTheRegistryIsBack(t *testing.T) {
	server, db := fleet(t)
	away := make(chan bool, 1)
	away <- false
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if off := <-away; off && r.URL.Query().Has("after") {
			away <- false // back the next time
			w.WriteHeader(http.StatusBadGateway)
			return
		} else {
			away <- off
		}
		inner.ServeHTTP(w, r)
	})
	ctx, interrupt := context.WithCancel(t.Context())
	out, errs, done := &lines{to: make(chan string)}, &lines{to: make(chan string)}, make(chan error, 1)
	<-away
	away <- true
	go func() { done <- command(ctx, out, errs, server.URL, "event ls -f --limit 1") }()
	<-out.to
	<-out.to
	if line := <-errs.to; !strings.Contains(line, "502") || !strings.Contains(line, "trying again") {
		t.Errorf("%q", line)
	}
	registrytest.Insert(t, db, "event", registrytest.Row{"seq": 108, "kind": "joined", "service": "while-away"})
	if line := <-errs.to; line != "the registry is back" {
		t.Errorf("%q", line)
	}
	if line := <-out.to; !strings.Contains(line, "while-away") {
		t.Errorf("%q", line)
	}
	interrupt()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A database that is younger than what was seen begins its numbers anew.
func TestFollowingGoesOnWithANewDatabase(t *testing.T) {
	server, db := fleet(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out, errs, done := &lines{to: make(chan string, 10)}, &lines{to: make(chan string, 10)}, make(chan error, 1)
	go func() { done <- command(ctx, out, errs, server.URL, "event ls -f --limit 1") }()
	<-out.to
	if line := <-out.to; !strings.Contains(line, "107") {
		t.Errorf("%q", line)
	}
	if _, err := db.Exec("DELETE FROM event WHERE seq > 101"); err != nil {
		t.Fatal(err)
	}
	if line := <-errs.to; !strings.Contains(line, "newest event is 101, after 107 was seen") || !strings.Contains(line, "going on from its first") {
		t.Errorf("%q", line)
	}
	if line := <-out.to; !strings.Contains(line, "  101 ") {
		t.Errorf("%q", line)
	}
	registrytest.Insert(t, db, "event", registrytest.Row{"seq": 102, "kind": "route_released", "service": "orders", "iid": strings.Repeat("x", 40)})
	line := <-out.to
	if !strings.Contains(line, "  102     route_released  orders/xxx") {
		t.Errorf("%q", line)
	}
	interrupt()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestARegistryThatIsAwayIsAnError(t *testing.T) {
	server, _ := fleet(t)
	url := server.URL
	server.Close()
	if err := command(t.Context(), io.Discard, io.Discard, url, "service ls"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if err := command(t.Context(), io.Discard, io.Discard, "nonsense", "service ls"); err == nil || !strings.Contains(err.Error(), "--registry") {
		t.Error(err)
	}
}

func TestOnlyRegistryAndOutputComeFromTheEnvironment(t *testing.T) {
	var bound []string
	leaves := 0
	for _, g := range Commands() {
		if g.Short == "" {
			t.Errorf("%s has no description", g.Name())
		}
		for _, c := range leavesOf(g) {
			leaves++
			if c.Short == "" || c.Args == nil && c.Name() != "ls" {
				t.Errorf("%s lacks a description or a check of arguments", c.CommandPath())
			}
			c.InheritedFlags()
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if settings.HasEnv(f) {
					bound = append(bound, f.Name)
				}
			})
		}
	}
	slices.Sort(bound)
	if got := slices.Compact(bound); fmt.Sprint(got) != "[admin output registry]" || leaves != 19 {
		t.Errorf("%v, %d commands", got, leaves)
	}
}

// leavesOf are the commands that do something.
func leavesOf(g *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range g.Commands() {
		if c.HasSubCommands() {
			all = append(all, leavesOf(c)...)
		} else {
			all = append(all, c)
		}
	}
	return all
}

func TestSpans(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.04: "0s", 1.26: "1.2s", 9.99: "9.9s", 10: "10s", 119.9: "119s", 120: "2m", 7199: "119m", 7200: "2h00m", 90061: "25h01m", 400_000: "4d",
	} {
		if got := span(seconds); got != want {
			t.Errorf("%v: %s, want %s", seconds, got, want)
		}
	}
	for ms, want := range map[float64]string{0: "+0ms", 12.4: "+12ms", -35: "-35ms", 61_500: "+61.5s", -3.6e6: "-3600.0s"} {
		if got := skew(&ms); got != want {
			t.Errorf("%v: %s, want %s", ms, got, want)
		}
	}
}
