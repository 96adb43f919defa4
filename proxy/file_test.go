package proxy

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/upstrand/upstrand/confgen/dialect"
)

// load puts a file in force.
func (w *world) load(published bool, text string) error {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "test.conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	doc, faults := dialect.Read(path, dialect.Options{})
	if len(faults) > 0 {
		w.t.Fatal(faults)
	}
	return w.p.Load(&File{Name: path, Config: doc.Config, Site: doc.Site, Resolver: doc.Resolver, Published: published, Fault: doc.Fault})
}

func (w *world) mustLoad(published bool, text string) {
	w.t.Helper()
	if err := w.load(published, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) bodies(path string, n int) string {
	w.t.Helper()
	var got []string
	for range n {
		got = append(got, w.get(path).body)
	}
	return strings.Join(got, " ")
}

func TestAFileAlone(t *testing.T) {
	w := newWorld(t, nil)
	a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
	w.mustLoad(false, `upstream u { server `+a.addr()+` weight=2; server `+b.addr()+`; }
server { listen 8080; location / { proxy_pass http://U; } location /one { proxy_pass http://`+b.addr()+`; } }`)
	if err := w.p.Ready(); err != nil {
		t.Error(err)
	}
	if got := w.bodies("/", 6); got != "a b a a b a" {
		t.Error(got)
	}
	if got := w.bodies("/one", 2); got != "b b" {
		t.Error(got)
	}
	if got := w.p.Upstreams(); !slices.Equal(got, []string{"u", b.addr()}) {
		t.Errorf("upstreams %v", got)
	}
}

// The published path and the file's meet in one table: a proxy_pass may name what is published, now or later, and a name
// that the file declares is the file's.
func TestAFileMayNamePublishedUpstreams(t *testing.T) {
	lookup := func(host string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	w := newWorld(t, func(c *Config) { c.Lookup = lookup })
	own, published := newBackend(t, "own", nil), newBackend(t, "published", nil)
	w.mustLoad(true, `upstream users { server `+own.addr()+`; }
server { listen 8080; location /api/ { proxy_pass http://orders/; } location /users { proxy_pass http://users; } }`)
	if got := w.get("/api/x").status; got != 502 {
		t.Errorf("before it is published: %d", got)
	}
	if len(w.p.table.Load().problems) != 1 {
		t.Errorf("problems %v", w.p.table.Load().problems)
	}
	w.set("orders", instance("a", published.addr()))
	w.set("users", instance("u", published.addr()))
	w.apply()
	if got := w.bodies("/api/x", 2) + " " + w.bodies("/users", 2); got != "published published own own" {
		t.Error(got)
	}
	if got := published.request().URL.Path; got != "/x" {
		t.Errorf("the backend got %s", got)
	}
	table := w.p.table.Load()
	if len(table.problems) != 0 || !slices.Equal(table.shadowed, []string{"users"}) {
		t.Errorf("problems %v, shadowed %v", table.problems, table.shadowed)
	}
	if got := w.get("/orders").status; got != 404 {
		t.Errorf("a published route beside a file: %d, want 404: the file's servers take every request", got)
	}
	w.mustLoad(true, `server { listen 8080; location /users { proxy_pass http://users; } }`)
	if got := w.get("/users").body; got != "published" {
		t.Errorf("without the file's own: %s", got)
	}
}

// Instances of services can be servers of a file's upstream.
func TestAFileMayDiscover(t *testing.T) {
	w := newWorld(t, nil)
	a, b, c := newBackend(t, "a", nil), newBackend(t, "b", nil), newBackend(t, "c", nil)
	w.set("orders", instance("a", a.addr()), instance("b", b.addr()))
	w.apply()
	w.mustLoad(true, `upstream u { discover orders; server `+c.addr()+`; } server { listen 8080; location / { proxy_pass http://u; } }`)
	if got := w.bodies("/", 4); got != "a b c a" {
		t.Error(got)
	}
	w.set("orders", instance("b", b.addr()))
	w.apply()
	if got := w.bodies("/", 2); got != "b c" {
		t.Errorf("after a left: %s", got)
	}
}

func TestHostsThatCantBeFound(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Lookup = func(host string) ([]netip.Addr, error) { return nil, errors.New(host + " has no address") }
	})
	a := newBackend(t, "a", nil)
	w.mustLoad(false, `server { listen 8080; location / { proxy_pass http://`+a.addr()+`; } }`)
	for name, text := range map[string]string{
		"proxy_pass": `server { listen 8080; location / { proxy_pass http://no.such.host; } }`,
		"server":     `upstream u { server no.such.host; } server { listen 8080; location / { proxy_pass http://u; } }`,
	} {
		err := w.load(false, text)
		if err == nil || !strings.Contains(err.Error(), "host not found") || !strings.Contains(err.Error(), "no.such.host") {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := w.load(false, "server { listen 8080;\n location /a { proxy_pass http://no.such.host; }\n location /b { proxy_pass http://nor.this; } }")
	if err == nil || !strings.Contains(err.Error(), ":2: proxy_pass: host") || !strings.Contains(err.Error(), ":3: proxy_pass: host") {
		t.Errorf("not both, each at its line: %v", err)
	}
	if got := w.get("/").body; got != "a" {
		t.Errorf("the file before is gone: %s", got)
	}
}

// A target that only the request knows: an address, or a name where the file has a resolver.
func TestTargetsOfRequests(t *testing.T) {
	var asked sync.Map
	w := newWorld(t, func(c *Config) {
		c.Lookup = func(host string) ([]netip.Addr, error) {
			n, _ := asked.LoadOrStore(host, 0)
			asked.Store(host, n.(int)+1)
			if host != "backend.test" {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	a := newBackend(t, "a", nil)
	_, port, _ := strings.Cut(a.addr(), ":")
	const locations = `location / { proxy_pass http://$arg_to; }`
	w.mustLoad(false, `server { listen 8080; `+locations+` }`)
	if got := w.bodies("/?to="+a.addr(), 2); got != "a a" {
		t.Error(got)
	}
	if got := w.get("/?to=backend.test:" + port).status; got != 502 {
		t.Errorf("a name without a resolver: %d", got)
	}
	w.mustLoad(false, `resolver 127.0.0.1; server { listen 8080; `+locations+` }`)
	if got := w.bodies("/?to=backend.test:"+port, 3); got != "a a a" {
		t.Error(got)
	}
	if n, _ := asked.Load("backend.test"); n != 1 {
		t.Errorf("asked %v times for three requests", n)
	}
	if got := w.get("/?to=nowhere.test:" + port).status; got != 502 {
		t.Errorf("a name without address: %d", got)
	}
}

func TestPicksPage(t *testing.T) {
	w := newWorld(t, nil)
	a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
	w.mustLoad(false, `upstream u { server `+a.addr()+` weight=2; server `+b.addr()+`; } server { listen 8080; location / { proxy_pass http://u; } }`)
	admin := w.p.Admin(nil, nil)
	page := func(query string) (code int, p picksPage) {
		t.Helper()
		rec := httptest.NewRecorder()
		admin.ServeHTTP(rec, httptest.NewRequest("GET", "/debug/picks"+query, nil))
		if rec.Code == 200 {
			if err := json.Unmarshal(rec.Body.Bytes(), &struct {
				Upstream, Note *string
				Picks          *[]json.RawMessage
			}{&p.Upstream, &p.Note, nil}); err != nil {
				t.Fatal(err)
			}
			p.Picks = w.p.Group("u").Picks()
		}
		return rec.Code, p
	}
	if code, _ := page("?upstream=nobody"); code != 404 {
		t.Errorf("no such upstream: %d", code)
	}
	if code, _ := page("?upstream=u&n=0"); code != 400 {
		t.Errorf("n=0: %d", code)
	}
	w.get("/")
	if _, p := page("?upstream=u"); len(p.Picks) != 0 || !strings.Contains(p.Note, "begins now") {
		t.Errorf("the first look: %+v", p)
	}
	w.bodies("/", 3)
	_, p := page("?upstream=u")
	if len(p.Picks) != 3 || p.Picks[0].Addr != b.addr() || len(p.Picks[0].Candidates) != 2 {
		t.Errorf("the second look: %+v", p)
	}
	if _, p := page("?upstream=u&off=1"); p.Picks != nil {
		t.Errorf("off: %+v", p)
	}
	w.get("/")
	if picks := w.p.Group("u").Picks(); picks != nil {
		t.Errorf("recorded after off: %v", picks)
	}
}
