package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy"
)

// zones of the demo: the proxy's own one comes first on /whoami/, by the upstrand that beats make; on /near/ an operator
// has declared the same, with a blacklist.
const nearAndFar = `
upstream near { discover whoami zone=a; }
upstream far { discover whoami zone=b; }
upstrand nearfar {
    upstream near blacklist_interval=3s;
    upstream far backup;
    order per_request;
    next_upstream_statuses error timeout 5xx;
}
server { location /near { proxy_pass http://$upstrand_nearfar; } }
`

// TestAWholeZoneIsKilled under load: no GET fails, all go to the other zone, and come back when the zone does.
func TestAWholeZoneIsKilled(t *testing.T) {
	d := launch(t, append(freePorts, "--zone=a", "--beat-interval=1s")...)
	tour := d.tourOf()
	proxyAt, demo, admin, registry := address(t, tour, "proxy"), address(t, tour, "demo"), address(t, tour, "admin"), address(t, tour, "registry")
	declare(t, registry, nearAndFar)
	l := &zoneLoad{t: t, last: map[string]*atomic.Value{"/whoami/": {}, "/near/": {}}}
	l.await("the declared route", func() bool {
		code, body := get(t, http.MethodGet, "http://"+proxyAt+"/near/")
		return code == 200 && strings.Contains(body, "zone a")
	})
	stop := l.begin(proxyAt)
	defer stop()
	l.await("both routes lead to zone a", l.all("a"))

	if code, body := get(t, http.MethodPost, "http://"+demo+"/zone/a/kill"); code != 200 || strings.Contains(body, "running") {
		t.Fatalf("kill: %d %s", code, body)
	}
	l.await("both routes lead to zone b", l.all("b"))
	near := upstrandOf(t, admin, "nearfar")
	if m := near.Members[0]; m.Upstream != "near" || m.BlacklistedUntil == nil || m.Jumps["error"] == 0 || near.Jumps["error"] == 0 {
		t.Errorf("near is not blacklisted: %+v", near)
	}
	l.await("the registry misses the beats", func() bool { // so many at once are held as unproven
		_, body := get(t, http.MethodGet, "http://"+registry+"/v1/services/whoami")
		return strings.Contains(body, `"live":1,`)
	})
	l.await("all is well without the zone", l.all("b"))

	begun := time.Now()
	if code, body := get(t, http.MethodPost, "http://"+demo+"/zone/a/start"); code != 200 || strings.Contains(body, "stopped") {
		t.Fatalf("start: %d %s", code, body)
	}
	l.await("both routes lead to zone a again", l.all("a"))
	back := time.Since(begun)
	t.Logf("all in zone a %v after the start", back.Round(time.Millisecond))
	if back > 12*time.Second { // a beat, a version, 3 s of blacklist
		t.Errorf("it took %v", back)
	}
	stop()
	t.Logf("%d GETs, %d failed, the slowest took %v", l.sent.Load(), l.failed.Load(), time.Duration(l.slowest.Load()).Round(time.Millisecond))
	if l.failed.Load() > 0 || l.sent.Load() < 100 {
		t.Errorf("%d of %d GETs failed, first: %v", l.failed.Load(), l.sent.Load(), l.first.Load())
	}
}

// zoneLoad is clients that ask all the time.
type zoneLoad struct {
	t            *testing.T
	last         map[string]*atomic.Value // by path: the zones of the last answers, such as aaab
	sent, failed atomic.Int64
	slowest      atomic.Int64 // ns
	first        atomic.Value // failure
}

// recent is how many answers in a row count as all.
const recent = 20

// begin asks each path from two clients until stop is called.
func (l *zoneLoad) begin(proxyAt string) (stop func()) {
	over, once, running := make(chan struct{}), sync.Once{}, sync.WaitGroup{}
	for path, last := range l.last {
		last.Store("")
		var mu sync.Mutex
		for range 2 {
			running.Go(func() {
				client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for {
					select {
					case <-over:
						return
					case <-time.After(3 * time.Millisecond):
					}
					zone := l.ask(client, "http://"+proxyAt+path)
					mu.Lock()
					text := last.Load().(string) + zone
					last.Store(text[max(0, len(text)-recent):])
					mu.Unlock()
				}
			})
		}
	}
	return func() {
		once.Do(func() { close(over) })
		running.Wait()
	}
}

// ask is the zone of an answer; x: it failed.
func (l *zoneLoad) ask(client *http.Client, url string) string {
	l.sent.Add(1)
	begun := time.Now()
	res, err := client.Get(url)
	body := []byte(nil)
	if err == nil {
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
	}
	if err != nil {
		l.failed.Add(1)
		l.first.CompareAndSwap(nil, fmt.Sprint(time.Now().Format("15:04:05.000 "), err))
		return "x"
	}
	for took := int64(time.Since(begun)); ; {
		if most := l.slowest.Load(); took <= most || l.slowest.CompareAndSwap(most, took) {
			break
		}
	}
	_, zone, _ := strings.Cut(string(body), "zone ")
	return zone[:1]
}

// all tells whether the last answers on all paths came from a zone.
func (l *zoneLoad) all(zone string) func() bool {
	return func() bool {
		for _, last := range l.last {
			if last.Load().(string) != strings.Repeat(zone, recent) {
				return false
			}
		}
		return true
	}
}

func (l *zoneLoad) await(what string, ok func() bool) {
	l.t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			for path, last := range l.last {
				l.t.Logf("%s: %v", path, last.Load())
			}
			l.t.Fatalf("not within 20 s: %s; %d failed, first: %v", what, l.failed.Load(), l.first.Load())
		}
	}
}

func declare(t *testing.T, registry, text string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"text": text, "author": "test"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post("http://"+registry+"/v1/topology", "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if said, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		t.Fatalf("declare: %s %s", res.Status, said)
	}
}

func upstrandOf(t *testing.T, admin, name string) proxy.UpstrandPage {
	t.Helper()
	code, body := get(t, http.MethodGet, "http://"+admin+"/debug/upstrands?name="+name)
	var pages []proxy.UpstrandPage
	if err := json.Unmarshal([]byte(body), &pages); code != 200 || err != nil || len(pages) != 1 {
		t.Fatalf("%d %v %s", code, err, body)
	}
	return pages[0]
}
