package site

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/limit"
)

// paced is a request at a moment, and what nginx makes of it: the answer, and the milliseconds until it comes.
type paced struct {
	at   int // milliseconds from the first
	ask  string
	want string
	wait int
}

// pacedTables are in times that leave nginx 20 ms to be late.
var pacedTables = []struct {
	name, conf string
	rows       []paced
}{
	{"no burst", `limit_req_zone $arg_k zone=z:1m rate=10r/s; server { listen 127.0.0.1:8080; location / { limit_req zone=z; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {30, "/?k=a", "503 | <page>", 0}, {60, "/?k=b", "200 | GET /PASSED", 0}, {80, "/?k=a", "503 | <page>", 0},
		{140, "/?k=a", "200 | GET /PASSED", 0}, {200, "/?k=a", "503 | <page>", 0}, {210, "/", "200 | GET /", 0}, {220, "/", "200 | GET /", 0}, {280, "/?k=a", "200 | GET /PASSED", 0},
	}},
	{"burst, one after the other", `limit_req_zone $arg_k zone=z:1m rate=10r/s; server { listen 127.0.0.1:8080; limit_req_status 429; location / { limit_req zone=z burst=3; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {10, "/?k=a", "200 | GET /DELAYED", 90}, {20, "/?k=a", "200 | GET /DELAYED", 180}, {30, "/?k=a", "200 | GET /DELAYED", 270},
		{40, "/?k=a", "429 | <page>", 0}, {60, "/?k=a", "429 | <page>", 0}, {150, "/?k=a", "200 | GET /DELAYED", 250}, {170, "/?k=b", "200 | GET /PASSED", 0}, {800, "/?k=a", "200 | GET /PASSED", 0},
	}},
	{"nodelay", `limit_req_zone $arg_k zone=z:1m rate=10r/s; server { listen 127.0.0.1:8080; location / { limit_req zone=z burst=2 nodelay; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {10, "/?k=a", "200 | GET /PASSED", 0}, {20, "/?k=a", "200 | GET /PASSED", 0}, {30, "/?k=a", "503 | <page>", 0},
		{50, "/?k=a", "503 | <page>", 0}, {140, "/?k=a", "200 | GET /PASSED", 0}, {160, "/?k=a", "503 | <page>", 0},
	}},
	{"delay from the third on", `limit_req_zone $arg_k zone=z:1m rate=5r/s; server { listen 127.0.0.1:8080; location / { limit_req zone=z burst=4 delay=2; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {10, "/?k=a", "200 | GET /PASSED", 0}, {20, "/?k=a", "200 | GET /PASSED", 0}, {30, "/?k=a", "200 | GET /DELAYED", 170},
		{40, "/?k=a", "200 | GET /DELAYED", 360}, {50, "/?k=a", "503 | <page>", 0}, {60, "/?k=a", "503 | <page>", 0},
	}},
	{"a minute's rate", `limit_req_zone $arg_k zone=z:1m rate=600r/m; server { listen 127.0.0.1:8080; location / { limit_req zone=z; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {70, "/?k=a", "503 | <page>", 0}, {140, "/?k=a", "200 | GET /PASSED", 0},
	}},
	{"several limits", `limit_req_zone $arg_k zone=k:1m rate=10r/s; limit_req_zone $arg_s zone=s:1m rate=2r/s;
		server { listen 127.0.0.1:8080; location / { limit_req zone=k burst=1; limit_req zone=s burst=2 nodelay; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a&s=1", "200 | GET /PASSED", 0}, {20, "/?k=a&s=1", "200 | GET /DELAYED", 80}, {40, "/?k=a&s=1", "503 | <page>", 0},
		{140, "/?k=a&s=1", "200 | GET /DELAYED", 60}, {300, "/?k=a&s=1", "503 | <page>", 0}, // the second has enough, and the first does not count it
		{320, "/?k=a", "200 | GET /PASSED", 0}, {340, "/?s=2", "200 | GET /PASSED", 0}, {360, "/", "200 | GET /", 0},
	}},
	{"dry run", `limit_req_zone $arg_k zone=z:1m rate=10r/s; server { listen 127.0.0.1:8080; limit_req_dry_run on; location / { limit_req zone=z burst=1; proxy_pass http://u/$limit_req_status; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {10, "/?k=a", "200 | GET /DELAYED_DRY_RUN", 0}, {20, "/?k=a", "200 | GET /REJECTED_DRY_RUN", 0}, {400, "/?k=a", "200 | GET /PASSED", 0},
	}},
	{"where it stands", `limit_req_zone $arg_k zone=z:1m rate=1r/s; limit_req_zone $arg_k zone=y:1m rate=1r/s;
		server { listen 127.0.0.1:8080; limit_req zone=z; error_page 503 = /sorry; location /sorry { proxy_pass http://u/sorry-$limit_req_status; }
		location / { proxy_pass http://u/$limit_req_status; } location /own { limit_req zone=y; proxy_pass http://u/$limit_req_status; } location /text { return 200 "[$limit_req_status]"; }
		location /to { rewrite ^ /own last; } location /denied { deny all; } }`, []paced{
		{0, "/?k=a", "200 | GET /PASSED", 0}, {10, "/own?k=a", "200 | GET /PASSED", 0}, {20, "/text?k=a", "200 | []", 0}, {30, "/?k=a", "200 | GET /sorry-REJECTED", 0},
		{40, "/to?k=b", "200 | GET /PASSED", 0}, {50, "/own?k=b", "200 | GET /sorry-REJECTED", 0}, {60, "/denied?k=c", "403 | <page>", 0}, {70, "/denied?k=c", "200 | GET /sorry-REJECTED", 0},
	}},
}

func TestRequestLimits(t *testing.T) {
	for _, tc := range pacedTables {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &ticking{newWorld(t, tc.conf)}
				pace(t, tc.rows, 0, func(ask string) string {
					c := &collector{}
					w.site.Handle(t.Context(), w, requestOf("GET "+ask), c)
					return c.line()
				})
				w.site.Close()
			})
			if path := os.Getenv("UPSTRAND_NGINX"); path != "" {
				ask := startNginx(t, path, tc.conf)
				pace(t, tc.rows, 20*time.Millisecond, func(line string) string { return ask("GET " + line) })
			}
		})
	}
}

// ticking is a world whose clock is that of the test.
type ticking struct{ *world }

func (*ticking) Now() int64 { return time.Now().UnixNano() }

// pace asks at the moments of a table; late is how much later than said an answer may come.
func pace(t *testing.T, rows []paced, late time.Duration, ask func(string) string) {
	t.Helper()
	var all sync.WaitGroup
	begin := time.Now()
	for i, row := range rows {
		time.Sleep(time.Until(begin.Add(time.Duration(row.at) * time.Millisecond)))
		all.Go(func() {
			asked := time.Now()
			got := ask(row.ask)
			took, want := time.Since(asked), time.Duration(row.wait)*time.Millisecond
			if got != row.want || took < want-late || took > want+late {
				t.Errorf("request %d at %d ms: %s after %v, want %s after %v", i, row.at, got, took, row.want, want)
			}
		})
	}
	all.Wait()
}

func TestDelayedClientLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &ticking{newWorld(t, `limit_req_zone $host zone=z:1m rate=1r/m; server { listen 127.0.0.1:8080; location / { limit_req zone=z burst=5; proxy_pass http://u; } }`)}
		w.site.Handle(t.Context(), w, requestOf("GET /"), &collector{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, began := &collector{}, time.Now()
		served := w.site.Handle(ctx, w, requestOf("GET /"), c)
		if served.Status != 499 || !c.aborted || time.Since(began) != time.Second {
			t.Errorf("%d, aborted %v, after %v", served.Status, c.aborted, time.Since(began))
		}
	})
}

// holding is a client that takes no answer before it is told to.
type holding struct {
	collector
	headed, release chan struct{}
}

func (h *holding) Head(status int, fields []forward.Field, length int64) error {
	close(h.headed)
	<-h.release
	return h.collector.Head(status, fields, length)
}

func TestConnLimits(t *testing.T) {
	w := newWorld(t, `limit_conn_zone $arg_k zone=k:1m; limit_conn_zone $server_name zone=s:1m;
		server { listen 127.0.0.1:8080; server_name a; limit_conn s 3; limit_conn_status 429;
		location / { proxy_pass http://u/$limit_conn_status; } location /k { limit_conn k 1; limit_conn s 3; proxy_pass http://u/$limit_conn_status; }
		location /dry { limit_conn k 1; limit_conn_dry_run on; proxy_pass http://u/$limit_conn_status; } }`)
	var held []*holding
	var all sync.WaitGroup
	hold := func(ask string) {
		h := &holding{headed: make(chan struct{}), release: make(chan struct{})}
		held = append(held, h)
		all.Go(func() { w.site.Handle(t.Context(), w, requestOf("GET "+ask), h) })
		<-h.headed
	}
	expect := func(ask, want string) {
		t.Helper()
		if got := w.ask("GET " + ask); got != want {
			t.Errorf("%s: %s, want %s", ask, got, want)
		}
	}
	hold("/k?k=a")
	expect("/k?k=a", "429 | <page>")
	expect("/k?k=b", "200 | GET /PASSED")
	expect("/k?k=b", "200 | GET /PASSED") // it is counted out again
	expect("/dry?k=a", "200 | GET /REJECTED_DRY_RUN")
	expect("/dry?k=b", "200 | GET /PASSED")
	hold("/k?k=b")
	hold("/") // no key, so it counts in one zone only
	expect("/k?k=c", "429 | <page>")
	expect("/dry?k=c", "200 | GET /PASSED")
	close(held[0].release)
	waitFor(t, func() bool { return w.ask("GET /k?k=a") == "200 | GET /PASSED" })
	for _, h := range held[1:] {
		close(h.release)
	}
	all.Wait()
	if n := w.site.zones.Conns(limit.ID{Name: "k", Key: "$arg_k", Size: 1 << 20}).Len(); n != 0 {
		t.Errorf("%d keys are left in the zone", n)
	}
	w.site.Close()
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come")
		}
	}
}

// leaving is a client that asks again while it gets the last bytes of an answer.
type leaving struct {
	collector
	again func()
}

func (l *leaving) Write(b []byte) error { l.again(); return l.collector.Write(b) }

// A place is free before the client can know that its answer is whole.
func TestPlaceIsFreeAtTheLastByte(t *testing.T) {
	w := newWorld(t, `limit_conn_zone $binary_remote_addr zone=k:1m; server { listen 127.0.0.1:8080; location / { limit_conn k 1; proxy_pass http://u; } location /deny { limit_conn k 1; deny all; } }`)
	for _, ask := range []string{"/", "/deny"} {
		next := ""
		c := &leaving{again: func() { next = w.ask("GET /") }}
		w.site.Handle(t.Context(), w, requestOf("GET "+ask), c)
		if next != "200 | GET /" {
			t.Errorf("%s: the next one gets %q", ask, next)
		}
	}
}

type told struct {
	*world
	said []string
}

func (w *told) Limited(l Limited) {
	w.said = append(w.said, strings.Join([]string{l.Zone, l.What, l.Level, l.Client.String()}, " "))
}

func TestLimitsAreTold(t *testing.T) {
	w := &told{world: newWorld(t, `limit_req_zone $host zone=r:1m rate=1r/m; limit_conn_zone $host zone=c:1m; limit_req_log_level notice;
		server { listen 127.0.0.1:8080; location / { limit_req zone=r; proxy_pass http://u; } location /b { limit_req zone=r burst=5; limit_req_dry_run on; proxy_pass http://u; } }`)}
	for _, ask := range []string{"/", "/", "/b"} {
		w.site.Handle(t.Context(), w, requestOf("GET "+ask), &collector{})
	}
	if got := strings.Join(w.said, ", "); got != "r REJECTED notice 127.0.0.1, r DELAYED_DRY_RUN info 127.0.0.1" {
		t.Errorf("%s", got)
	}
}

func TestLimitFaults(t *testing.T) {
	for conf, want := range map[string]string{
		"limit_req_zone $host zone=a:1m rate=0r/s;":                                  "rate=",
		"limit_req_zone $host zone=a:1m rate=1;":                                     "rate=",
		"limit_req_zone $host zone=a:1m rate=1r/h;":                                  "rate=",
		"limit_req_zone $host zone=a:16k rate=1r/s;":                                 "32k",
		"limit_req_zone $host zone=a rate=1r/s;":                                     "zone=NAME:SIZE",
		"limit_req_zone $host zone=a:1m sync;":                                       `"sync"`,
		"limit_req_zone $host zone=a:1m rate=1r/s; limit_conn_zone $host zone=a:1m;": "stands already",
		"limit_conn_zone $host a:1m;":                                                "limit_conn_zone KEY",
		"limit_conn_zone $host zone=a:1m; limit_conn a 0;":                           "1 to 65535",
		"limit_conn_zone $host zone=a:1m; limit_conn a 5; limit_conn a 6;":           "already",
		"limit_conn b 5;":    "not defined",
		"limit_req zone=b;":  "not defined",
		"limit_req burst=5;": "lacks zone=",
		"limit_req_zone $host zone=a:1m rate=1r/s; limit_req zone=a burst=-1;": `"burst=-1"`,
		"limit_req_zone $host zone=a:1m rate=1r/s; limit_req zone=a fast;":     `"fast"`,
		"limit_req_status 200;":                        "400 to 599",
		"limit_conn_log_level loud;":                   "info, notice, warn, error",
		"limit_req_zone $nothing zone=a:1m rate=1r/s;": "no variable $nothing",
	} {
		_, faults := compileText(t, conf)
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), want) {
			t.Errorf("%s %v, want one with %q", conf, faults, want)
		}
	}
}

// What was counted stays over a reload, as long as zone and key are the same.
func TestZonesOutliveASite(t *testing.T) {
	const conf = `limit_req_zone %s zone=z:1m rate=1r/m; server { listen 127.0.0.1:8080; location / { limit_req zone=z; proxy_pass http://u; } }`
	zones := &limit.Zones{}
	answers := []string{}
	w := newWorld(t, fmt.Sprintf(conf, "$host"))
	for i, key := range []string{"$host", "$host", "$host$remote_addr"} {
		next, faults := compileWith(t, fmt.Sprintf(conf, key), Options{Zones: zones, Upstreams: func(string) bool { return true }})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if i > 0 {
			w.site.Close()
		}
		w.site = next
		answers = append(answers, w.ask("GET /"))
	}
	if got := strings.Join(answers, ", "); got != "200 | GET /, 503 | <page>, 200 | GET /" {
		t.Error(got)
	}
}

// TestARequestIsCountedOnce also when the site of now goes on with it.
func TestARequestIsCountedOnce(t *testing.T) {
	w := newWorld(t, `limit_req_zone $host zone=r:1m rate=1r/m; server { listen 127.0.0.1:8080; location / { limit_req zone=r; proxy_pass http://u; } }`)
	first := takeRequest(w.site, w, requestOf("GET /"), &collector{}, 0)
	first.serve(t.Context())
	var before Served
	first.left(&before)
	first.release()
	c := &collector{}
	w.site.Continue(t.Context(), w, requestOf("GET /"), c, &before)
	if got := c.line(); got != "200 | GET /" {
		t.Error(got)
	}
	if got := w.ask("GET /"); !strings.HasPrefix(got, "503") {
		t.Error(got)
	}
}
