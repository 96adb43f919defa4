package proxy

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// strandWorld is a proxy that walks the upstrand `ring`: a, b and c in turn, d as backup; `plain` has one upstream. A fails.
func strandWorld(t *testing.T, r prometheus.Registerer) (w *world, now *atomic.Int64) {
	t.Helper()
	now = &atomic.Int64{}
	now.Store(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixNano())
	w = newWorld(t, func(c *Config) {
		c.Clock, c.Registerer = func() int64 { return now.Load() }, r
	})
	server := func(name string) string {
		return "upstream " + name + " { server " + newBackend(t, name, nil).addr() + "; }\n"
	}
	w.mustLoad(false, `upstream a { server `+refused(t)+`; }`+server("b")+server("c")+server("d")+`
		upstrand ring {
			upstream a blacklist_interval=10s; upstream b blacklist_interval=5s; upstream c; upstream d backup;
			next_upstream_statuses error 5xx; next_upstream_timeout 20s; intercept_statuses 404 4xx @sorry;
		}
		upstrand plain { upstream b; order per_request; }
		server { listen 8080; location / { proxy_pass http://$upstrand_ring; } location /plain { proxy_pass http://$upstrand_plain; } }`)
	return w, now
}

func adminPage[T any](t *testing.T, w *world, method, path string) (code int, text string, out T) {
	t.Helper()
	rec := httptest.NewRecorder()
	w.p.Admin(nil, nil).ServeHTTP(rec, httptest.NewRequest(method, path, nil))
	if rec.Code == 200 {
		if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return rec.Code, rec.Body.String(), out
}

func ring(t *testing.T, w *world) UpstrandPage {
	t.Helper()
	_, _, pages := adminPage[[]UpstrandPage](t, w, "GET", "/debug/upstrands?name=RING")
	if len(pages) != 1 {
		t.Fatalf("%+v", pages)
	}
	return pages[0]
}

func order(p UpstrandPage) (names string) {
	for _, m := range p.Members {
		names += m.Upstream
	}
	return names
}

func TestUpstrandsPage(t *testing.T) {
	w, now := strandWorld(t, nil)
	if got := ring(t, w); order(got) != "abcd" || got.Cursor != "a" || got.Start != "turn" || got.NextTimeout != 20 || got.Walks != 0 {
		t.Errorf("before any request: %+v", got)
	}
	if got := w.bodies("/", 1); got != "b" {
		t.Fatalf("a jumps to b: %s", got)
	}
	got := ring(t, w)
	if order(got) != "bcad" || got.Cursor != "b" || got.Walks != 1 || got.Stops != 2 || got.Jumps["error"] != 1 || got.Ended["answered"] != 1 {
		t.Errorf("after a jump: %+v", got)
	}
	a := got.Members[2]
	until := time.Unix(0, now.Load()).Add(10 * time.Second).UTC()
	if a.BlacklistedUntil == nil || !a.BlacklistedUntil.Equal(until) || a.BlacklistedFor != 10 || a.Interval != 10 || a.Place != 1 ||
		a.Jumps["error"] != 1 || a.Blacklistings != 1 || a.Peers != 1 || a.Stops != 1 {
		t.Errorf("a: %+v", a)
	}
	if d := got.Members[3]; !d.Backup || d.Place != 1 || d.Eligible != 1 {
		t.Errorf("d: %+v", d)
	}
	if i := got.Intercepts; len(i) != 1 || i[0].URI != "@sorry" || !slices.Equal(i[0].Statuses, []string{"404", "4xx"}) {
		t.Errorf("intercepts: %+v", i)
	}
	now.Add(int64(10 * time.Second))
	if a := ring(t, w).Members[2]; a.BlacklistedUntil != nil || a.BlacklistedFor != 0 {
		t.Errorf("a, 10 s later: %+v", a)
	}
	if _, _, all := adminPage[[]UpstrandPage](t, w, "GET", "/debug/upstrands"); len(all) != 2 || all[1].Name != "plain" || all[1].Start != "first" || all[1].Cursor != "b" {
		t.Errorf("all: %+v", all)
	}
	if code, text, _ := adminPage[any](t, w, "GET", "/debug/upstrands?upstream=x"); code != 400 || !strings.Contains(text, "allowed: upstrand, name") {
		t.Errorf("%d %q", code, text)
	}
	if code, text, _ := adminPage[any](t, w, "GET", "/debug/upstrands?name=x"); code != 404 || !strings.Contains(text, `want one of ["ring" "plain"]`) {
		t.Errorf("%d %s", code, text)
	}
}

func TestUpstrandsAreReset(t *testing.T) {
	w, _ := strandWorld(t, nil)
	w.bodies("/", 1)
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"":                           {400, "name is missing"},
		"?name=nobody":               {404, `name="nobody": want one of ["ring" "plain"]`},
		"?name=ring&upstream=nobody": {404, `upstream="nobody" is not in upstrand ring: want one of ["a" "b" "c" "d"]`},
		"?name=ring&upstream=":       {400, "upstream is empty"},
	} {
		if code, text, _ := adminPage[any](t, w, "POST", "/debug/upstrands/reset"+path); code != want.code || !strings.Contains(text, want.text) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, _, _ := adminPage[any](t, w, "GET", "/debug/upstrands/reset?name=ring"); code != 405 && code != 404 {
		t.Errorf("GET resets: %d", code)
	}
	r := httptest.NewRequest("POST", "/debug/upstrands/reset?name=ring", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	rec := httptest.NewRecorder()
	if w.p.Admin(nil, nil).ServeHTTP(rec, r); rec.Code != 403 {
		t.Errorf("another site's page resets: %d", rec.Code)
	}
	if a := ring(t, w).Members[2]; a.BlacklistedUntil == nil {
		t.Fatalf("reset by a refused request: %+v", a)
	}
	if _, _, done := adminPage[ResetPage](t, w, "POST", "/debug/upstrands/reset?name=ring&upstream=b"); done.Cleared != 0 {
		t.Errorf("b: %+v", done)
	}
	if _, _, done := adminPage[ResetPage](t, w, "POST", "/debug/upstrands/reset?name=ring&upstream=a"); done != (ResetPage{"ring", "a", 1}) {
		t.Errorf("a: %+v", done)
	}
	got := ring(t, w)
	if order(got) != "bcad" || got.Members[2].BlacklistedUntil != nil {
		t.Errorf("one is reset, the cursor stays: %+v", got)
	}
	if _, _, done := adminPage[ResetPage](t, w, "POST", "/debug/upstrands/reset?name=ring"); done.Cleared != 0 {
		t.Errorf("all: %+v", done)
	}
	if got := ring(t, w); order(got) != "abcd" {
		t.Errorf("the cursor is not reset: %+v", got)
	}
}

func TestWalksAreRecorded(t *testing.T) {
	w, _ := strandWorld(t, nil)
	w.bodies("/", 1)
	walks := func(query string) walksPage {
		t.Helper()
		_, _, page := adminPage[walksPage](t, w, "GET", "/debug/picks?upstrand=ring"+query)
		return page
	}
	if page := walks(""); len(page.Walks) != 0 || !strings.Contains(page.Note, "begins now") {
		t.Errorf("the first look: %+v", page)
	}
	if _, _, done := adminPage[ResetPage](t, w, "POST", "/debug/upstrands/reset?name=ring"); done.Cleared != 1 {
		t.Fatalf("%+v", done)
	}
	w.bodies("/", 4) // a to b, b, c, a is passed over
	page := walks("")
	if len(page.Walks) != 4 {
		t.Fatalf("%+v", page)
	}
	var texts []string
	for _, s := range page.Walks[0].Steps {
		texts = append(texts, s.Text)
	}
	want := []string{"begins at a: it is its turn", "a came to an error (502), which is listed: on to b",
		"b came to 200, which is the answer: next_upstream_statuses does not list it"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	if first := page.Walks[0]; !slices.Equal(first.Stops, []string{"a", "b"}) || first.End != "answered" || first.Method != "GET" {
		t.Errorf("%+v", first)
	}
	if last := page.Walks[3].Steps[0]; last.What != "skip" || last.Upstream != "a" || last.Blacklisted != 10 || last.Text != "a is passed over: blacklisted for 10 s more" {
		t.Errorf("%+v", last)
	}
	if page := walks("&n=1"); len(page.Walks) != 1 || page.Walks[0].Stops[0] != "b" {
		t.Errorf("n=1: %+v", page)
	}
	if page := walks("&off=1"); len(page.Walks) != 0 {
		t.Errorf("off: %+v", page)
	}
	if code, _, _ := adminPage[any](t, w, "GET", "/debug/picks?upstrand=x"); code != 404 {
		t.Errorf("unknown: %d", code)
	}
	if code, _, _ := adminPage[any](t, w, "GET", "/debug/picks?upstrand=ring&upstream=a"); code != 400 {
		t.Errorf("both: %d", code)
	}
}

func TestUpstrandMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	w, now := strandWorld(t, r)
	w.bodies("/", 4)
	got := gathered(t, r)
	for series, want := range map[string]float64{
		"upstrand_walks_total{upstrand=ring}":                                  4,
		"upstrand_walks_ended_total{reason=answered,upstrand=ring}":            4,
		"upstrand_walk_seconds{upstrand=ring}":                                 4,
		"upstrand_stops_total{part=main,upstrand=ring,upstream=a}":             1,
		"upstrand_stops_total{part=main,upstrand=ring,upstream=b}":             3,
		"upstrand_jumps_total{cause=error,part=main,upstrand=ring,upstream=a}": 1,
		"upstrand_blacklisted{part=main,upstrand=ring,upstream=a}":             1,
		"upstrand_blacklisted{part=backup,upstrand=ring,upstream=d}":           0,
		"upstrand_blacklistings_total{part=main,upstrand=ring,upstream=a}":     1,
		"upstrand_intercepts_total{upstrand=ring}":                             0,
		"upstrand_walks_total{upstrand=plain}":                                 0,
	} {
		if n, ok := got[series]; !ok || n != want {
			t.Errorf("%s is %v (%v), want %v", series, n, ok, want)
		}
	}
	now.Add(int64(time.Minute))
	w.mustLoad(false, `upstream b { server 127.0.0.1:1; } upstrand ring { upstream b; } server { listen 8080; location / { proxy_pass http://$upstrand_ring; } }`)
	for series := range gathered(t, r) {
		if strings.HasPrefix(series, "upstrand_") && (strings.Contains(series, "upstrand=plain") || strings.Contains(series, "upstream=a")) {
			t.Errorf("%s outlives what it is of", series)
		}
	}
}
