package balance_test

import (
	"encoding/json"
	"fmt"
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

// vector is one recorded case: what nginx 1.31.5 did, step by step. testdata holds themes 01 to 03 as recorded.
type vector struct {
	Name          string
	ServerConf    string `json:"server_conf"`
	Deterministic bool
	Workers       int
	Upstreams     []vectorUpstream
	ReadTimeout   string `json:"proxy_read_timeout"`
	ConfigOK      *bool  `json:"config_ok"`
	Steps         []vectorStep
}

type vectorUpstream struct {
	Name    string
	Zone    bool
	Servers []struct {
		Name        string
		Weight      int
		MaxFails    *int `json:"max_fails"`
		FailTimeout *int `json:"fail_timeout_s"`
		MaxConns    int  `json:"max_conns"`
		Backup      bool
		Down, Drain bool
	}
}

type vectorStep struct {
	Align   bool    `json:"align_second"`
	Wait    float64 `json:"wait_s"`
	Reload  bool
	Set     map[string]string
	Release []string
	Open    []string
	Repeat  int
	Request *struct{ Method, Path string }
	Each    *struct {
		Field  string
		Values []string
	}
	Expect struct {
		Peers          [][]string
		Status         []any
		StatusAll      *int    `json:"status_all"`
		UpstreamStatus [][]int `json:"upstream_status"`
	}
}

// skipReason says why a case can't be replayed over picking and deciding alone; empty: it can.
func (v *vector) skipReason() string {
	switch {
	case v.ConfigOK != nil:
		return "checks the reading of a configuration"
	case v.Workers > 1 && !v.Deterministic:
		return "two workers without a common zone: their order is not deterministic"
	case v.Name == "pnu_http09_answer":
		return "an answer without a status line never reaches the core: the engine refuses HTTP/0.9"
	}
	for _, s := range v.Steps {
		if s.Reload {
			return "records that nginx loses its state on a reload; here state is carried over on purpose"
		}
	}
	return ""
}

func loadVectors(t *testing.T) map[string][]vector {
	t.Helper()
	files, err := filepath.Glob("testdata/0*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("vector files: %v, %v", files, err)
	}
	themes := map[string][]vector{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var vs []vector
		if err := json.Unmarshal(raw, &vs); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		themes[strings.TrimSuffix(filepath.Base(f), ".json")] = vs
	}
	return themes
}

func (u *vectorUpstream) group(t *testing.T, clock balance.Clock) *balance.Group {
	t.Helper()
	ordinals := map[balance.Key]int{}
	var servers []balance.Server
	for _, s := range u.Servers {
		key := balance.Key{Backup: s.Backup, ID: s.Name, Addr: s.Name}
		key.Ordinal = ordinals[key]
		ordinals[balance.Key{Backup: s.Backup, ID: s.Name, Addr: s.Name}]++
		b := balance.Server{Key: key, Addr: s.Name, Weight: s.Weight, MaxConns: s.MaxConns, MaxFails: 1,
			FailTimeout: 10 * time.Second, Down: s.Down, Drain: s.Drain}
		if s.MaxFails != nil {
			b.MaxFails = *s.MaxFails
		}
		if s.FailTimeout != nil {
			b.FailTimeout = time.Duration(*s.FailTimeout) * time.Second
		}
		servers = append(servers, b)
	}
	g, err := balance.NewGroup(u.Name, clock, servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
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
		l := location{path: m[1], policy: forward.Policy{Next: forward.OnError | forward.OnTimeout}}
		l.upstream = passRE.FindStringSubmatch(m[2])[1]
		if n := nextRE.FindStringSubmatch(m[2]); n != nil {
			l.policy.Next = 0
			for _, word := range strings.Fields(n[1]) {
				c, ok := forward.ParseClass(word)
				switch {
				case ok:
					l.policy.Next |= c
				case word == "non_idempotent":
					l.policy.NonIdempotent = true
				case word != "off":
					t.Fatalf("proxy_next_upstream %s", word)
				}
			}
		}
		if n := triesRE.FindStringSubmatch(m[2]); n != nil {
			l.policy.Tries, _ = strconv.Atoi(n[1])
		}
		if n := withinRE.FindStringSubmatch(m[2]); n != nil {
			d, err := time.ParseDuration(n[1])
			if err != nil {
				t.Fatal(err)
			}
			l.policy.Within = d
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		t.Fatalf("no location in %q", v.ServerConf)
	}
	return out
}

func (s *vectorStep) requests() []struct{ method, path string } {
	var out []struct{ method, path string }
	add := func(m, p string) { out = append(out, struct{ method, path string }{m, p}) }
	switch {
	case s.Request == nil:
	case s.Each != nil:
		for _, val := range s.Each.Values {
			switch s.Each.Field {
			case "method":
				add(val, s.Request.Path)
			case "path":
				add(s.Request.Method, val)
			default:
				panic("each " + s.Each.Field)
			}
		}
	case len(s.Open) > 0:
		for range s.Open {
			add(s.Request.Method, s.Request.Path)
		}
	default:
		for range max(s.Repeat, 1) {
			add(s.Request.Method, s.Request.Path)
		}
	}
	return out
}

func (s *vectorStep) wantStatus(i int) string {
	if s.Expect.StatusAll != nil {
		return strconv.Itoa(*s.Expect.StatusAll)
	}
	return fmt.Sprint(s.Expect.Status[i])
}

func (s *vectorStep) wantUpstreamStatus(i int) []int {
	if s.Expect.UpstreamStatus == nil {
		return []int{200}
	}
	return s.Expect.UpstreamStatus[i]
}
