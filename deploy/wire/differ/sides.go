package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
	"github.com/upstrand/upstrand/deploy/wire"
	"github.com/upstrand/upstrand/proxy"
)

// short is how long the proxies wait for a client: what is never whole should not hold up the rest.
const short = 250 * time.Millisecond

// lanes is a proxy of each kind, each with a backend of its own, for one sender.
type lanes struct{ nginx, file, published *wire.Lane }

// server is the configuration of a lane. nginx takes it too.
func server(listen, backend string) string {
	return fmt.Sprintf(`
server {
  listen %s;
  client_header_timeout 250ms;
  client_body_timeout 250ms;
  client_max_body_size 1m;
  proxy_read_timeout 5s;
  proxy_next_upstream off;
  proxy_http_version 1.1;
  proxy_set_header Host $host;
  proxy_set_header Connection "";
  location / { proxy_pass http://%s; }
}
`, listen, backend)
}

// nginx is a running one with a server for each lane.
type nginx struct {
	proc  *rig.Proc
	dir   string
	lanes []*wire.Lane
}

func startNginx(path string, n int) (*nginx, error) {
	dir, err := os.MkdirTemp("", "upstrand-differ-")
	if err != nil {
		return nil, err
	}
	x := &nginx{dir: dir}
	conf := fmt.Sprintf("daemon off;\nworker_processes 1;\nuser root;\npid %[1]s/pid;\nerror_log %[1]s/error.log crit;\nevents {}\nhttp {\naccess_log off;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	for range n {
		addr, err := rig.FreeAddr()
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		b, err := wire.NewBackend()
		if err != nil {
			return nil, errors.Join(err, x.close())
		}
		x.lanes = append(x.lanes, &wire.Lane{Addr: addr, Backend: b})
		conf += server(addr, b.Addr)
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf+"}\n"), 0o644); err != nil {
		return nil, errors.Join(err, x.close())
	}
	x.proc = &rig.Proc{Name: "nginx", Path: path, Args: []string{"-c", file, "-p", dir, "-e", filepath.Join(dir, "error.log")}, Log: filepath.Join(dir, "output")}
	if err := x.proc.Start(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	if err := x.await(); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

func (x *nginx) await() error {
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", x.lanes[0].Addr)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(until) || !x.proc.Alive() {
			return fmt.Errorf("nginx does not listen: %w\n%s", err, x.proc.Output())
		}
	}
}

func (x *nginx) close() error {
	if x.proc != nil {
		_ = x.proc.Term(2 * time.Second)
		x.proc.Close()
	}
	for _, l := range x.lanes {
		l.Backend.Close()
	}
	return os.RemoveAll(x.dir)
}

// ours opens the proxy's lanes.
func ours(l *lanes) error {
	var err error
	l.file, err = wire.NewLane(func(b *wire.Backend) (*wire.Proxy, error) {
		return wire.FromFile(func(listen string) string { return server(listen, b.Addr) })
	})
	if err != nil {
		return err
	}
	l.published, err = wire.NewLane(func(b *wire.Backend) (*wire.Proxy, error) {
		return wire.FromTopology(func(c *proxy.Config) {
			c.Engine.ClientHeader, c.Engine.ClientBody, c.Engine.ClientIdle = short, short, time.Second
			c.Engine.ClientLine, c.Engine.ClientLines = 8<<10, 32<<10
			c.Peers.Read = 5 * time.Second
		}, b.Addr)
	})
	return err
}

// marked is the backend's answer, which none of the proxies gives by itself.
const marked = "HTTP/1.1 200 OK\r\nX-Backend: yes\r\nContent-Length: 2\r\n\r\nok"

// outcome is what came of a payload: what the backend got, and what the client did.
type outcome struct {
	requests []*wire.Message // in order
	answers  []int
	faults   []string // in what the proxy wrote
	open     bool     // the connection was not closed in time
}

// send sends the bytes in one go and reads until the proxy closes.
func send(l *wire.Lane, text string) (outcome, error) {
	l.Backend.Cut()
	_, _ = l.Backend.Take()
	l.Backend.Say(wire.Answer(marked))
	c, err := wire.Dial(l.Addr, 6*time.Second)
	if err != nil {
		return outcome{}, err
	}
	defer c.Close()
	_, _ = c.Write([]byte(text))
	var o outcome
	o.read(c, l)
	got, _ := l.Backend.Take()
	for _, m := range got {
		if m.Whole {
			o.requests = append(o.requests, m)
		}
	}
	return o, nil
}

// read takes the answers apart. Those of the backend belong to its requests in their order, of which that to a HEAD has no body.
func (o *outcome) read(c *wire.Client, l *wire.Lane) {
	asked := 0
	for {
		if _, err := c.In.Peek(1); err != nil {
			var late net.Error
			o.open = errors.As(err, &late) && late.Timeout()
			return
		}
		backends := false
		m, err := wire.ReadAnswerTo(c.In, func(m *wire.Message) bool {
			if _, n := m.Get("X-Backend"); n == 0 {
				return false
			}
			backends = true
			asked++
			return l.Backend.Method(asked-1) == "HEAD"
		})
		o.faults = append(o.faults, m.Faults...)
		if err != nil {
			// An answer of the proxy's own may be one to a HEAD, and is the last.
			if (backends || m.Status() < 400) && !errors.Is(err, syscall.ECONNRESET) {
				o.faults = append(o.faults, fmt.Sprintf("an answer that is not whole: %q, %v", m.Line, err))
			}
			return
		}
		if m.Status()/100 != 1 {
			o.answers = append(o.answers, m.Status())
		}
	}
}
