package balance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/balance"
	"github.com/upstrand/upstrand/proxy/forward"
)

// themes are those that are about picking and deciding.
var themes = []string{"01", "02", "03", "04", "05", "06", "07", "08"}

// vectorsDir holds the one copy of the vectors; UPSTRAND_VECTORS names another folder with the same file names.
func vectorsDir() string {
	if dir := os.Getenv("UPSTRAND_VECTORS"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "deploy", "conformance", "testdata")
}

// vector is one recorded case: what nginx 1.31.5 did, step by step.
type vector struct {
	Name          string
	ServerConf    string            `json:"server_conf"`
	Addresses     map[string]string `json:"server_addresses"`
	Deterministic bool
	Workers       int
	Upstreams     []vectorUpstream
	ReadTimeout   string `json:"proxy_read_timeout"`
	ConfigOK      *bool  `json:"config_ok"`
	Defect        string
	Steps         []vectorStep

	theme string
	ours  bool // something of it is replaced by what we do instead
}

type vectorUpstream struct {
	Name       string
	Method     string
	MethodArgs []string `json:"method_args"`
	Directives [][]string
	Servers    []struct {
		Name        string
		Weight      int
		MaxFails    *int `json:"max_fails"`
		FailTimeout *int `json:"fail_timeout_s"`
		MaxConns    int  `json:"max_conns"`
		Backup      bool
		Down, Drain bool
		Route       string
	}
}

// sticky gives the words of the upstream's sticky directive behind its name.
func (u *vectorUpstream) sticky() []string {
	for _, d := range u.Directives {
		if d[0] == "sticky" {
			return d[1:]
		}
	}
	return nil
}

// skipReason says why a case can't be replayed over picking and deciding alone; empty: it can.
func (v *vector) skipReason() string {
	switch {
	case v.ConfigOK != nil:
		return "checks the reading of a configuration"
	case v.Workers > 1 && !v.Deterministic:
		return "two workers without a common zone: their order is not deterministic"
	case v.Defect != "" && !v.ours:
		return "records a defect, and nothing says what is right instead: " + v.Defect
	case !v.Deterministic && !v.counted() && randomRules[v.Name] == nil:
		return "the recorded order is one of many, and no rule for it is known"
	}
	for i := range v.Upstreams {
		if name := v.Upstreams[i].unknownVariable(); name != "" {
			return "uses $" + name + ", which is beyond this package"
		}
	}
	return ""
}

func (v *vector) counted() bool {
	for _, s := range v.Steps {
		if s.Expect.Counts != nil {
			return true
		}
	}
	return false
}

func loadVectors(t *testing.T) []*vector {
	t.Helper()
	ours := map[string]map[string]json.RawMessage{}
	readJSON(t, filepath.Join(vectorsDir(), "ours.json"), &ours)
	var all []*vector
	for _, theme := range themes {
		files, err := filepath.Glob(filepath.Join(vectorsDir(), theme+"_*.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files of theme %s in %s: %v, %v", theme, vectorsDir(), files, err)
		}
		var list []*vector
		readJSON(t, files[0], &list)
		for _, v := range list {
			v.theme = theme
			v.replace(t, ours[theme+"/"+v.Name])
		}
		all = append(all, list...)
	}
	return all
}

// readJSON reads a file; one that is not there leaves the value as it is.
func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// replace puts what we do instead, by the step's number from 1, over what was recorded.
func (v *vector) replace(t *testing.T, ours map[string]json.RawMessage) {
	t.Helper()
	for number, fields := range ours {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(v.Steps) {
			t.Fatalf("ours.json: %s/%s has no step %q", v.theme, v.Name, number)
		}
		if err := json.Unmarshal(fields, &v.Steps[n-1].Expect); err != nil {
			t.Fatalf("ours.json: %s/%s: %v", v.theme, v.Name, err)
		}
		v.ours = true
	}
}

// spec is the upstream as this package takes it.
func (u *vectorUpstream) spec(t *testing.T, v *vector) balance.Spec {
	t.Helper()
	spec := balance.Spec{Method: u.method(t), Sticky: u.stickySpec(t)}
	ordinals := map[balance.Key]int{}
	for _, s := range u.Servers {
		text := v.Addresses[s.Name]
		key := balance.Key{Backup: s.Backup, ID: s.Name, Addr: resolved(text)}
		equals := key
		key.Ordinal = ordinals[equals]
		ordinals[equals]++
		b := balance.Server{Key: key, Addr: key.Addr, Weight: s.Weight, MaxConns: s.MaxConns, MaxFails: 1,
			FailTimeout: 10 * time.Second, Down: s.Down, Drain: s.Drain, Text: text, Route: s.Route}
		if s.MaxFails != nil {
			b.MaxFails = *s.MaxFails
		}
		if s.FailTimeout != nil {
			b.FailTimeout = time.Duration(*s.FailTimeout) * time.Second
		}
		spec.Servers = append(spec.Servers, b)
	}
	return spec
}

// resolved is the address that nginx prints for a server's text.
func resolved(text string) string {
	text = strings.Replace(text, "localhost", "127.0.0.1", 1)
	if !strings.Contains(text, ":") {
		text += ":80"
	}
	return text
}

func (u *vectorUpstream) method(t *testing.T) balance.MethodSpec {
	t.Helper()
	spec := balance.MethodSpec{Name: u.Method}
	args := u.MethodArgs
	switch u.Method {
	case "round_robin":
		spec.Name = ""
	case "hash":
		args = args[1:]
	}
	for _, arg := range args {
		switch arg {
		case "consistent":
			spec.Consistent = true
		case "two":
			spec.Two = true
		case "least_conn":
			spec.LeastConn = true
		case "last_byte":
			spec.LastByte = true
		case "inflight":
			spec.Inflight = true
		case "header":
		default:
			t.Fatalf("%s %s", u.Method, arg)
		}
	}
	return spec
}

func (u *vectorUpstream) stickySpec(t *testing.T) balance.StickySpec {
	t.Helper()
	words := u.sticky()
	if words == nil {
		return balance.StickySpec{}
	}
	spec := balance.StickySpec{Kind: words[0], OnHeader: words[len(words)-1] == "header"}
	for _, w := range words[1:] {
		if text, ok := strings.CutPrefix(w, "timeout="); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			spec.Timeout = d
		}
	}
	return spec
}

var (
	locationRE = regexp.MustCompile(`location (\S+) \{([^}]*)\}`)
	passRE     = regexp.MustCompile(`proxy_pass http://(\w+);`)
	nextRE     = regexp.MustCompile(`proxy_next_upstream ([^;]*);`)
	triesRE    = regexp.MustCompile(`proxy_next_upstream_tries (\d+);`)
	withinRE   = regexp.MustCompile(`proxy_next_upstream_timeout (\w+);`)
)

// location is what the vectors' server blocks say.
type location struct {
	path, upstream string
	policy         forward.Policy
}

func (v *vector) locations(t *testing.T) []location {
	t.Helper()
	var out []location
	for _, m := range locationRE.FindAllStringSubmatch(v.ServerConf, -1) {
		l := location{path: m[1], upstream: passRE.FindStringSubmatch(m[2])[1], policy: policyOf(t, m[2])}
		out = append(out, l)
	}
	if len(out) == 0 {
		t.Fatalf("no location in %q", v.ServerConf)
	}
	return out
}

func policyOf(t *testing.T, block string) forward.Policy {
	t.Helper()
	p := forward.Policy{Next: forward.OnError | forward.OnTimeout}
	if n := nextRE.FindStringSubmatch(block); n != nil {
		p.Next = 0
		for _, word := range strings.Fields(n[1]) {
			c, ok := forward.ParseClass(word)
			switch {
			case ok:
				p.Next |= c
			case word == "non_idempotent":
				p.NonIdempotent = true
			case word != "off":
				t.Fatalf("proxy_next_upstream %s", word)
			}
		}
	}
	if n := triesRE.FindStringSubmatch(block); n != nil {
		p.Tries, _ = strconv.Atoi(n[1])
	}
	if n := withinRE.FindStringSubmatch(block); n != nil {
		d, err := time.ParseDuration(n[1])
		if err != nil {
			t.Fatal(err)
		}
		p.Within = d
	}
	return p
}
