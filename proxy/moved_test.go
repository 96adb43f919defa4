package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// upload is a request whose body is still to come, as far as given.
type upload struct {
	t *testing.T
	c net.Conn
}

func (w *world) upload(path string, length int, begin string) upload {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	requests := w.p.servers.stats().Requests
	_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, length, begin)
	eventually(w.t, "the request is there", func() bool { return w.p.servers.stats().Requests > requests })
	return upload{w.t, c}
}

func (u upload) end(rest string) (int, string) {
	u.t.Helper()
	_, _ = io.WriteString(u.c, rest)
	resp, err := http.ReadResponse(bufio.NewReader(u.c), nil)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestUploadsOverAReload: a request whose body still comes in when all that it would have gone to is replaced is routed anew,
// as long as somebody listens where it came in.
func TestUploadsOverAReload(t *testing.T) {
	echo := func(rw http.ResponseWriter, r *http.Request) { _, _ = io.Copy(rw, r.Body) }
	for name, tc := range map[string]struct {
		before, after string // A, B are backends, and L is where the world listens
		status        int
	}{
		"renamed": {`upstream a { server A; } server { listen L; location / { proxy_pass http://a; } }`,
			`upstream b { server A; } server { listen L; location / { proxy_pass http://b; } }`, 200},
		"its only server replaced": {`upstream a { server A; } server { listen L; location / { proxy_pass http://a; } }`,
			`upstream a { server B; } server { listen L; location / { proxy_pass http://a; } }`, 200},
		"an address instead": {`upstream a { server A; } server { listen L; location / { proxy_pass http://a; } }`,
			`server { listen L; location / { proxy_pass http://B; } }`, 200},
		"a walk renamed": {`upstream a { server A; } upstrand u { upstream a; } server { listen L; location / { proxy_pass http://$upstrand_u; } }`,
			`upstream b { server B; } upstrand v { upstream b; } server { listen L; location / { proxy_pass http://$upstrand_v; } }`, 200},
		"a walk's upstream renamed": {`upstream a { server A; } upstrand u { upstream a; } server { listen L; location / { proxy_pass http://$upstrand_u; } }`,
			`upstream b { server B; } upstrand u { upstream b; } server { listen L; location / { proxy_pass http://$upstrand_u; } }`, 200},
		"answered here by now": {`upstream a { server A; } server { listen L; location / { proxy_pass http://a; } }`,
			`server { listen L; location / { return 410; } }`, 410},
		"nobody listens there": {`upstream a { server A; } server { listen L; location / { proxy_pass http://a; } }`,
			`upstream b { server A; } server { listen 127.0.0.1:9; location / { proxy_pass http://b; } }`, 502},
		"no server is up": {`upstream a { server A; } server { listen L; location / { proxy_pass http://a; } }`,
			`upstream b { server A down; } server { listen L; location / { proxy_pass http://b; } }`, 502},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			a, b := newBackend(t, "a", echo), newBackend(t, "b", echo)
			texts := strings.NewReplacer("server A", "server "+a.addr(), "server B", "server "+b.addr(), "http://B", "http://"+b.addr(), "listen L", "listen "+w.addr)
			w.mustLoad(false, texts.Replace(tc.before))
			u := w.upload("/x", 10, "12345")
			w.mustLoad(false, texts.Replace(tc.after))
			if status, body := u.end("67890"); status != tc.status || status == 200 && body != "1234567890" {
				t.Errorf("%d %q", status, body)
			}
			if got := a.got.Load() + b.got.Load(); tc.status == 200 && got != 1 {
				t.Errorf("sent %d times", got)
			}
		})
	}
}

// TestManyReloadsUnderUploads: none of the requests under way fails.
func TestManyReloadsUnderUploads(t *testing.T) {
	echo := func(rw http.ResponseWriter, r *http.Request) { _, _ = io.Copy(rw, r.Body) }
	w := newWorld(t, nil)
	var addrs [3]string
	for i := range addrs {
		addrs[i] = newBackend(t, "b", echo).addr()
	}
	load := func(i int) {
		var list strings.Builder
		for _, k := range rand.Perm(3)[:1+i%3] {
			list.WriteString(" server " + addrs[k] + ";")
		}
		w.mustLoad(false, strings.NewReplacer("K", fmt.Sprint(i%4), "LIST", list.String(), "ONE", addrs[i%3], "L;", w.addr+";").Replace(`upstream nK { server ONE; }
upstream same { server ONE; } upstream list { LIST }
upstream sK { server ONE; } upstream tK { server ONE; } upstrand w { upstream sK; upstream tK; }
server { listen L; location /n { proxy_pass http://nK; } location /s { proxy_pass http://same; } location /l { proxy_pass http://list; } location /w { proxy_pass http://$upstrand_w; } }`))
	}
	load(0)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, path := range []string{"/n", "/s", "/l", "/w"} {
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					r, in := io.Pipe()
					go func() {
						for range 4 {
							_, _ = io.WriteString(in, "part ")
							time.Sleep(5 * time.Millisecond)
						}
						_ = in.Close()
					}()
					if a, err := w.try("POST", path, r); err != nil || a.status != 200 || a.body != "part part part part " {
						t.Errorf("%s: %d %q, %v", path, a.status, a.body, err)
						return
					}
				}
			})
		}
	}
	for i := range 60 {
		load(i + 1)
		time.Sleep(5 * time.Millisecond)
	}
	close(stop)
	wg.Wait()
}
