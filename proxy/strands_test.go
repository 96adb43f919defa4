package proxy

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// sums is what backends got of bodies.
type sums struct {
	mu   sync.Mutex
	seen []string // backend length sum
}

func (s *sums) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// summing is a backend that reads the whole body and answers with the status.
func (s *sums) summing(t *testing.T, name string, status int) *backend {
	t.Helper()
	return newBackend(t, name, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, err := io.Copy(h, r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprintf("%s %d %x %v", name, n, h.Sum(nil)[:8], err))
		s.mu.Unlock()
		w.WriteHeader(status)
	})
}

// chunked hides the length of a body.
type chunked struct{ io.Reader }

// dripping gives a body in pieces.
type dripping struct {
	rest  []byte
	piece int
}

func (d *dripping) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond)
	n := copy(p[:min(len(p), d.piece)], d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// strandConf is upstreams n0 to n(stops-1) in one upstrand, of which the last answers 200 and the others as first does.
func strandConf(t *testing.T, stops int, directives string, first func(name string) string, last string) string {
	t.Helper()
	conf := ""
	for i := range stops {
		addr := last
		if i < stops-1 {
			addr = first(fmt.Sprintf("n%d", i))
		}
		conf += fmt.Sprintf("upstream n%d { server %s max_fails=0; }\n", i, addr)
	}
	return conf + "upstrand s { upstream ~^n; order per_request; next_upstream_statuses error timeout 5xx non_idempotent; }\n" +
		"server { listen 8080; client_max_body_size 64m; location / { proxy_http_version 1.1; " + directives + " proxy_pass http://$upstrand_s; } }"
}

// TestBodiesAtEachStop: every stop gets the same bytes, by length and in chunks, taken in whole before and as they come.
func TestBodiesAtEachStop(t *testing.T) {
	for _, directives := range []string{"", "proxy_request_buffering off;"} {
		for _, stops := range []int{2, 5} {
			sizes := []int{1, 64<<10 - 1, 64<<10 + 1, 1 << 20}
			if !testing.Short() && (stops == 5) == (directives == "") { // it takes its time
				sizes = append(sizes, 64<<20)
			}
			all := &sums{}
			w := newWorld(t, nil)
			w.mustLoad(false, strandConf(t, stops, directives, func(name string) string { return all.summing(t, name, 503).addr() }, all.summing(t, "last", 200).addr()))
			for i, size := range sizes {
				body := bytes.Repeat([]byte("0123456789abcdefg"), size/17+1)[:size]
				for _, method := range []string{"POST", "PUT"} {
					var r io.Reader = bytes.NewReader(body)
					if (i+stops+len(method))%2 == 0 {
						r = chunked{r}
					}
					got := w.do(method, "/", r)
					seen := all.take()
					if got.status != 200 || len(seen) != stops {
						t.Fatalf("%q %s of %d bytes over %d stops: %d %v", directives, method, size, stops, got.status, seen)
					}
					want := fmt.Sprintf(" %d %x <nil>", size, sha256First(body))
					for _, s := range seen {
						if !strings.HasSuffix(s, want) {
							t.Errorf("%q %s: %s, want %s", directives, method, s, want)
						}
					}
				}
			}
		}
	}
}

func sha256First(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:8]
}

// TestSlowUploadAlongAWalk: stops that answer early, and ones that close, don't cost a byte of what comes slowly.
func TestSlowUploadAlongAWalk(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdefg"), 20_000) // 340 kB in pieces of 4 kB
	for _, directives := range []string{"", "proxy_request_buffering off;"} {
		all := &sums{}
		early := func(string) string {
			return newBackend(t, "early", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadFull(r.Body, make([]byte, 10_000))
				w.Header().Set("Connection", "close")
				w.WriteHeader(503)
			}).addr()
		}
		w := newWorld(t, nil)
		w.mustLoad(false, strandConf(t, 4, directives, early, all.summing(t, "last", 200).addr()))
		for _, method := range []string{"POST", "PUT"} {
			got := w.do(method, "/", &dripping{body, 4096})
			if seen := all.take(); got.status != 200 || len(seen) != 1 || seen[0] != fmt.Sprintf("last %d %x <nil>", len(body), sha256First(body)) {
				t.Errorf("%q %s: %d %v", directives, method, got.status, seen)
			}
		}
	}
}

// TestBodiesTooLargeForAWalk: above client_max_body_size it is 413 at once, or when it is met.
func TestBodiesTooLargeForAWalk(t *testing.T) {
	for _, directives := range []string{"client_max_body_size 100k;", "client_max_body_size 100k; proxy_request_buffering off;"} {
		all := &sums{}
		w := newWorld(t, nil)
		w.mustLoad(false, strandConf(t, 2, directives, func(name string) string { return all.summing(t, name, 503).addr() }, all.summing(t, "last", 200).addr()))
		for _, r := range []io.Reader{bytes.NewReader(make([]byte, 101<<10)), chunked{bytes.NewReader(make([]byte, 200<<10))}} {
			if got, err := w.try("PUT", "/", r); err == nil && got.status != 413 {
				t.Errorf("%s: %d, want 413", directives, got.status)
			}
		}
		for _, s := range all.take() {
			if strings.HasPrefix(s, "last") {
				t.Errorf("%s: the second stop was asked: %s", directives, s)
			}
		}
	}
}

// TestAWalkEndsInTime: a client waits no longer than next_upstream_timeout and one stop.
func TestAWalkEndsInTime(t *testing.T) {
	stuck := make(chan struct{})
	hang := func(string) string {
		return newBackend(t, "hang", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-stuck:
			case <-r.Context().Done():
			}
		}).addr()
	}
	t.Cleanup(func() { close(stuck) })
	w := newWorld(t, nil)
	conf := strandConf(t, 5, "proxy_read_timeout 1100ms;", hang, hang(""))
	w.mustLoad(false, strings.Replace(conf, "order per_request;", "order per_request; next_upstream_timeout 2s;", 1))
	began := time.Now()
	if got := w.get("/"); got.status != 504 {
		t.Errorf("%d, want 504", got.status)
	}
	if took := time.Since(began); took < 2200*time.Millisecond || took > 2200*time.Millisecond+2*time.Second {
		t.Errorf("it took %v, want two stops of 1100 ms", took)
	}
	if v, ok := w.p.UpstrandView("S"); !ok || v.Totals.Stops != 2 || v.Totals.Seconds < 2 {
		t.Errorf("%+v", v.Totals)
	}
}
