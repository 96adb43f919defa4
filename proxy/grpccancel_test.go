package proxy

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestManyCallsAreTakenBack: clients that take calls back at any time leave nothing behind, and others get what is theirs.
func TestManyCallsAreTakenBack(t *testing.T) {
	w := newWorld(t, nil)
	a, _ := grpcServer(t, "a")
	one := newBackend(t, "one", nil)
	w.mustLoad(false, `upstream u { server `+a+`; } server { listen 8080; location / { grpc_pass grpc://u; }
  location /one { proxy_pass http://`+one.addr()+`; } }`)
	url, tr := w.speaksHTTP2(), h2c(t)
	ask := func(ctx context.Context, n int) {
		path, size := "/x", n%3*20000
		if n%4 == 0 {
			path = "/one"
		}
		from, to := io.Pipe()
		go func() {
			for i := 0; i < size; i += 50 {
				if _, err := io.WriteString(to, strings.Repeat(string(rune('a'+n%26)), 50)); err != nil {
					return
				}
			}
			_ = to.Close()
		}()
		res, err := call(t, ctx, tr, url+path, from)
		if err != nil {
			_ = from.Close()
			return
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		_ = from.Close()
		if err == nil && res.StatusCode == http.StatusOK && path == "/x" {
			if got := strings.Count(string(b), string(rune('a'+n%26))); got < size || n%26 != 0 && got != size {
				t.Errorf("%d: %d bytes for %d", n, got, size)
			}
		}
	}
	ask(t.Context(), 0)
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			for i := range 15 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(40))*time.Millisecond)
				if i%5 == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
				}
				ask(ctx, worker*15+i)
				cancel()
			}
		})
	}
	all.Wait()
	eventually(t, "nobody is at work any more", func() bool {
		b := make([]byte, 1<<20)
		stacks := string(b[:runtime.Stack(b, true)])
		return !strings.Contains(stacks, "forward.(*Exchange)") && !strings.Contains(stacks, "http2.(*attempt)") &&
			!strings.Contains(stacks, "http2.(*idlers)") && !strings.Contains(stacks, "body.(*Replay)")
	})
	for _, p := range w.state("u") {
		if p.Conns != 0 || p.Fails != 0 {
			t.Errorf("%+v", p)
		}
	}
}
