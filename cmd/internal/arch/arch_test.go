package arch

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/upstrand/upstrand/"

// rule is what the packages of one folder may import.
type rule struct {
	folder string   // with all below it, unless a longer rule fits
	own    []string // packages of this project; "..." at the end stands for all below
	third  []string // of other modules, by prefix; nil: not looked at, empty: nothing but the standard library
	why    string
}

var rules = []rule{
	{folder: "heartbeat", own: nil, third: []string{"github.com/segmentio/kafka-go"},
		why: "other people's services import it, so it pulls in kafka-go and nothing else"},
	{folder: "heartbeat/sidecar", own: []string{"heartbeat"}, why: "the sidecar beats; it knows nothing of the registry"},
	{folder: "heartbeat/listener", own: []string{"heartbeat", "registry"}, why: "the listener takes beats to a Recorder that it declares itself"},
	{folder: "registry", own: nil, why: "the registry is a leaf: it knows nothing of anyone"},
	{folder: "registry/wire", own: nil, third: []string{}, why: "the API's JSON types are a leaf that clients import"},
	{folder: "registry/client", own: []string{"registry/wire"}, third: []string{}, why: "a client of the API needs its types and nothing else"},
	{folder: "registry/api", own: []string{"registry", "registry/wire", "heartbeat", "confgen", "confgen/plan", "confgen/topology"},
		why: "the API reads the registry, decodes beats, and plans what operators declare"},
	{folder: "migrations", own: nil, why: "the schema knows nothing of who uses it"},
	{folder: "confgen/topology", own: nil, third: []string{}, why: "what is published is a leaf that both sides import"},
	{folder: "confgen", own: []string{"registry", "confgen/topology", "confgen/declared"}, why: "confgen turns registry values into a topology; it knows no Kafka and no proxy"},
	{folder: "confgen/declared", own: []string{"confgen/topology", "confgen/dialect"}, why: "what is declared is read without knowing who is live"},
	{folder: "confgen/plan", own: []string{"confgen", "confgen/declared", "confgen/topology", "registry"}, why: "a plan is confgen's own answer for files that are not in force"},
	{folder: "confgen/dialect", own: []string{"confgen/topology"}, third: []string{"github.com/nginxinc/nginx-go-crossplane"},
		why: "the dialect turns a file into what is published and what a site is compiled from; it serves nothing"},
	{folder: "confgen/publish", own: []string{"confgen/topology"}, why: "the Kafka side of confgen decides nothing"},
	{folder: "proxy", own: []string{"proxy/balance", "proxy/certs", "proxy/forward", "proxy/http1", "proxy/front", "proxy/http2", "proxy/site", "proxy/accesslog", "proxy/names", "proxy/upstrand", "proxy/limit", "confgen/topology"},
		why: "the data path knows nothing of Kafka, the registry, heartbeats, the generator or the syntax of files"},
	{folder: "proxy/balance", own: []string{"confgen/topology"}, why: "picking knows nothing but what is published"},
	{folder: "proxy/upstrand", own: []string{"proxy/balance"}, third: []string{}, why: "the walk of an upstrand knows its stops and nothing of requests"},
	{folder: "proxy/forward", own: []string{"confgen/topology", "proxy/balance", "proxy/upstrand", "proxy/proxyproto", "proxy/syntax"}, why: "forwarding knows peers, no engine"},
	{folder: "proxy/http1", own: []string{"proxy/socket", "confgen/topology", "proxy/balance", "proxy/forward", "proxy/syntax"}, why: "an engine meets the core at its boundary"},
	{folder: "proxy/telemetry", own: []string{"proxy/forward"}, third: []string{"go.opentelemetry.io", "google.golang.org/protobuf"},
		why: "spans are made of what the forwarding core tells; nothing but this package knows OpenTelemetry"},
	{folder: "proxy/proxyproto", own: nil, third: []string{}, why: "a header is read without knowing who believes it"},
	{folder: "proxy/syntax", own: nil, third: []string{}, why: "the rules of the wire know no wire"},
	{folder: "proxy/body", own: []string{"proxy/forward"}, why: "a body is held for replay whoever reads it"},
	{folder: "proxy/http2", own: []string{"confgen/topology", "proxy/balance", "proxy/forward", "proxy/body", "proxy/front", "proxy/http1", "proxy/syntax", "proxy/proxyproto"}, why: "an engine meets the core at its boundary"},
	{folder: "proxy/front", own: []string{"proxy/forward", "proxy/socket", "proxy/body", "proxy/syntax", "proxy/proxyproto"}, why: "an engine meets the core at its boundary"},
	{folder: "proxy/limit", own: nil, third: []string{}, why: "limits count by keys, whatever those are of"},
	{folder: "proxy/certs", own: nil, third: []string{}, why: "certificates know no servers and no wire"},
	{folder: "proxy/socket", own: nil, third: []string{"golang.org/x/sys"}, why: "system calls know nothing of what is read and written"},
	{folder: "proxy/script", own: nil, third: []string{}, why: "texts with variables know nothing of what their variables mean"},
	{folder: "proxy/accesslog", own: nil, third: []string{}, why: "a log is lines in files, whoever writes them"},
	{folder: "proxy/names", own: []string{"confgen/topology"}, why: "names become addresses without knowing who needs them"},
	{folder: "proxy/site", own: []string{"confgen/topology", "proxy/balance", "proxy/upstrand", "proxy/forward", "proxy/script", "proxy/accesslog", "proxy/certs", "proxy/limit", "proxy/proxyproto"},
		why: "a site stands between an engine and the forwarding core; it knows no wire and no syntax"},
	{folder: "proxy/simulate", own: []string{"proxy", "proxy/...", "confgen/topology"}, why: "the simulator is the data path in a world of its own"},
	{folder: "proxy/agent", own: []string{"proxy", "confgen/topology", "heartbeat"}, why: "the agent feeds a proxy from the topic"},
	{folder: "cmd", own: []string{"..."}, why: "commands connect everything"},
	{folder: "deploy", own: []string{"..."}, why: "end-to-end tests use everything"},
}

// bans are modules that some packages must not reach, not even through others.
var bans = []struct {
	folder, module, why string
}{
	{"cmd/upstrand", "modernc.org/sqlite", "production runs on MySQL; the embedded database is upstrand-dev's"},
	{"cmd/upstrand", "github.com/twmb/franz-go", "production runs on Kafka; the embedded broker is upstrand-dev's"},
	{"cmd/upstrand", "github.com/upstrand/upstrand/cmd/internal/embedded", "the embedded servers are upstrand-dev's"},
	{"cmd/upstrand", "github.com/upstrand/upstrand/cmd/internal/demo", "the demo services are upstrand-dev's"},
	{"proxy", "github.com/segmentio/kafka-go", "the data path knows no Kafka"},
	{"proxy", "database/sql", "the data path knows no database"},
	{"proxy", "go.opentelemetry.io", "who traces is for cmd to choose"},
	{"proxy/agent", "database/sql", "a proxy needs no database"},
	{"registry", "github.com/segmentio/kafka-go", "the registry knows no Kafka"},
	{"confgen/topology", "github.com/segmentio/kafka-go", "what is published knows no Kafka"},
	{"heartbeat", "github.com/prometheus", "other people's services import it: no metrics library"},
	{"heartbeat", "github.com/rs/zerolog", "other people's services import it: no logging library"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func TestArrows(t *testing.T) {
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		r, ok := ruleOf(folder)
		if !ok {
			t.Errorf("%s has no rule here: add one with the reason", folder)
			continue
		}
		for _, path := range p.Imports {
			checkImport(t, folder, path, r)
		}
	}
}

func checkImport(t *testing.T, folder, path string, r rule) {
	t.Helper()
	if own, ours := strings.CutPrefix(path, module); ours {
		if !allowed(own, folder, r.own) {
			t.Errorf("%s imports %s: %s", folder, own, r.why)
		}
		return
	}
	if r.third == nil || !strings.Contains(strings.Split(path, "/")[0], ".") {
		return
	}
	if !slices.ContainsFunc(r.third, func(m string) bool { return within(path, m) }) {
		t.Errorf("%s imports %s: %s", folder, path, r.why)
	}
}

// allowed also lets a package use what lies below it and is internal to it.
func allowed(own, folder string, list []string) bool {
	if strings.HasPrefix(own, folder+"/internal/") {
		return true
	}
	return slices.ContainsFunc(list, func(may string) bool {
		all, wide := strings.CutSuffix(may, "...")
		return own == may || wide && strings.HasPrefix(own, all)
	})
}

func TestNothingForbiddenIsReached(t *testing.T) {
	for _, p := range list(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		for _, ban := range bans {
			if folder != ban.folder {
				continue
			}
			for _, dep := range p.Deps {
				if within(dep, ban.module) {
					t.Errorf("%s reaches %s: %s", folder, dep, ban.why)
				}
			}
		}
	}
}

// The test is worth nothing if it looks at nothing.
func TestEveryRuleHasItsPackage(t *testing.T) {
	folders := map[string]bool{}
	for _, p := range list(t) {
		folders[strings.TrimPrefix(p.ImportPath, module)] = true
	}
	for _, r := range rules {
		found := folders[r.folder]
		for f := range folders {
			found = found || strings.HasPrefix(f, r.folder+"/")
		}
		if !found {
			t.Errorf("rule for %s, but there is no such package", r.folder)
		}
	}
	for _, b := range bans {
		if !folders[b.folder] {
			t.Errorf("ban for %s, but there is no such package", b.folder)
		}
	}
}

// readSources reads the Go files itself: go test remembers a result until a file changes that the test process has
// opened, and knows nothing of what go list reads.
func readSources(t *testing.T) {
	t.Helper()
	read := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		read++
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil || read < 50 {
		t.Fatalf("read %d Go files: %v", read, err)
	}
}

func ruleOf(folder string) (best rule, ok bool) {
	for _, r := range rules {
		if within(folder, r.folder) && (!ok || len(r.folder) > len(best.folder)) {
			best, ok = r, true
		}
	}
	return best, ok
}

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

// list asks go for the packages of this module, without their tests: those may use what they like.
func list(t *testing.T) []pkg {
	t.Helper()
	readSources(t)
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Deps,Standard", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == module+"registry/registrytest" {
			continue // a contract test that several packages share
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}
