package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/deploy/conformance"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/forward"
)

// replay is one recorded case on its way through the proxy.
type replay struct {
	vector *conformance.Vector
	ours   conformance.Ours
	world  *world
	proxy  *proxy.Proxy
	file   *proxy.File
	byAddr map[string]string // symbol of an address
	log    bytes.Buffer
	lines  map[string]map[string]string // of the access log, by the request's id
	opened map[string]*visit
	count  int
	warned warnings
	diffs  []string
}

func newReplay(v *conformance.Vector, ours conformance.Ours, seed uint64) (*replay, error) {
	r := &replay{vector: v, ours: ours, world: newWorld(seed), byAddr: map[string]string{}, lines: map[string]map[string]string{},
		opened: map[string]*visit{}}
	for symbol, text := range v.ServerAddresses {
		addr := conformance.HostPort(text)
		r.byAddr[addr] = symbol
		r.world.server(addr).name = symbol
	}
	r.world.log = &r.log
	var err error
	if r.file, err = readConf(v); err != nil {
		return nil, err
	}
	if r.proxy, err = r.world.proxy(r.warned.watch); err != nil {
		return nil, err
	}
	if err := r.world.load(r.proxy, r.file); err != nil {
		return nil, errors.Join(err, r.proxy.Shutdown(context.Background()))
	}
	return r, nil
}

func (r *replay) close() {
	r.world.finish()
	if err := r.proxy.Shutdown(context.Background()); err != nil {
		r.diffs = append(r.diffs, err.Error())
	}
}

func (r *replay) step(i int) error {
	s := &r.vector.Steps[i]
	if s.Align {
		r.world.until(r.world.aligned())
	}
	r.world.pass(time.Duration(s.Wait * float64(time.Second)))
	if s.Reload {
		if err := r.world.load(r.proxy, r.file); err != nil {
			return err
		}
	}
	for symbol, text := range s.Set {
		b, err := parseBehaviour(text)
		if err != nil {
			return err
		}
		r.world.set(conformance.HostPort(r.vector.ServerAddresses[symbol]), b)
	}
	for _, name := range s.Release {
		v := r.opened[name]
		delete(r.opened, name)
		v.hold = ""
		r.world.wake(v, released)
		r.look()
	}
	got, err := r.requests(s)
	if err != nil || got == nil {
		return err
	}
	r.compareWarnings(i, s)
	want := r.ours.At(i+1, s.Expect)
	if want["response_headers"] != nil {
		got["response_headers"] = headersOf(want["response_headers"], got["headers"].([]map[string][]string))
	}
	for _, d := range conformance.Compare(want, got, r.vector) {
		r.diffs = append(r.diffs, fmt.Sprintf("step %d: %s", i+1, d))
	}
	return nil
}

// requests sends those of the step and says what was seen, by the names of the recording; nil when there are none.
func (r *replay) requests(s *conformance.Step) (map[string]any, error) {
	if s.Open != nil {
		return r.open(s)
	}
	all, err := s.Requests()
	if err != nil || all == nil {
		return nil, err
	}
	seen := newSeen(len(all))
	for i, q := range all {
		v := &visit{}
		v.client.keep = true
		rid := r.rid()
		r.world.send(context.Background(), r.proxy, q2r(q, rid), v)
		r.look()
		if err := r.readLog(); err != nil {
			return nil, err
		}
		r.see(seen, i, rid, v)
	}
	return seen.fields(), nil
}

func (r *replay) open(s *conformance.Step) (map[string]any, error) {
	peers, status := [][]string{}, []any{}
	for _, name := range s.Open {
		rid := r.rid()
		v := &visit{hold: name, name: name}
		if r.world.open(context.Background(), r.proxy, q2r(*s.Request, rid), v) {
			r.opened[name] = v
			reached := []string{}
			for _, t := range v.tries {
				if t.received {
					reached = append(reached, t.server.name)
				}
			}
			peers, status = append(peers, reached), append(status, "held")
			continue
		}
		r.look()
		if err := r.readLog(); err != nil {
			return nil, err
		}
		tried, _ := r.tried(rid)
		peers, status = append(peers, tried), append(status, v.client.status)
	}
	return map[string]any{"peers": peers, "status": status}, nil
}

func (r *replay) rid() string {
	r.count++
	return "r" + strconv.Itoa(r.count)
}

var taken = netip.MustParseAddrPort("127.0.0.1:19000")

// q2r is a recorded request as it comes to the proxy.
func q2r(q conformance.Request, rid string) *forward.Request {
	r := &forward.Request{Method: []byte(or(q.Method, "GET")), Target: []byte(or(q.Path, "/")), Authority: []byte("t"),
		Remote: taken.Addr(), RemotePort: 50000, Local: taken, Proto: "HTTP/1.1",
		Fields: []forward.Field{field("Host", "t"), field("Connection", "close"), field("X-Rid", rid)}}
	switch {
	case q.ClientIP != "" && q.RealSource:
		r.Remote = netip.MustParseAddr(q.ClientIP)
	case q.ClientIP != "":
		r.Fields = append(r.Fields, field("X-Client-IP", q.ClientIP))
	}
	for _, name := range sortedKeys(q.Headers) {
		r.Fields = append(r.Fields, field(name, q.Headers[name]))
	}
	if q.Body != nil {
		r.Length = int64(len(*q.Body))
		r.Fields = append(r.Fields, field("Content-Length", strconv.Itoa(len(*q.Body))))
		if r.Length > 0 {
			r.Body = &content{bytes: []byte(*q.Body)}
		}
	}
	return r
}

// readLog takes in the lines that the access log has got.
func (r *replay) readLog() error {
	for {
		line, err := r.log.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var l map[string]string
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("access log line %q: %w", line, err)
		}
		r.lines[l["rid"]] = l
	}
}

var (
	between = regexp.MustCompile(`, | : `)
	address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+:\d+|localhost:\d+`)
	seconds = regexp.MustCompile(`\d+\.\d{3}`)
)

// tried is the servers that the access log names for a request, and their statuses.
func (r *replay) tried(rid string) (peers []string, statuses []int) {
	peers, statuses = []string{}, []int{}
	line := r.lines[rid]
	if line["addr"] == "" || line["addr"] == "-" {
		return peers, statuses
	}
	for _, addr := range between.Split(line["addr"], -1) {
		switch name := r.byAddr[addr]; {
		case name != "":
			peers = append(peers, name)
		case addr != "" && addr[0] >= '0' && addr[0] <= '9':
			peers = append(peers, addr)
		default:
			peers = append(peers, "!"+addr)
		}
	}
	for _, text := range between.Split(line["us"], -1) {
		n, _ := strconv.Atoi(text)
		statuses = append(statuses, n)
	}
	return peers, statuses
}

// seen is what was observed of the requests of a step.
type seen struct {
	peers    [][]string
	upstream [][]int
	status   []int
	body     []string
	received [][]conformance.Seen
	header   []map[string][]string
	texts    map[string][]string
}

func newSeen(n int) *seen {
	return &seen{peers: make([][]string, n), upstream: make([][]int, n), status: make([]int, n), body: make([]string, n),
		received: make([][]conformance.Seen, n), header: make([]map[string][]string, n), texts: map[string][]string{}}
}

func (r *replay) see(s *seen, i int, rid string, v *visit) {
	s.peers[i], s.upstream[i] = r.tried(rid)
	s.status[i], s.body[i], s.header[i] = v.client.status, string(v.client.body), v.client.header()
	s.received[i] = []conformance.Seen{}
	for _, t := range v.tries {
		if t.received {
			s.received[i] = append(s.received[i], t.asRecorded())
		}
	}
	for _, kv := range conformance.Variables() {
		text := address.ReplaceAllStringFunc(r.lines[rid][kv[0]], func(a string) string { return or(r.byAddr[a], a) })
		field := kv[1]
		if strings.HasSuffix(field, "_time") {
			field, text = field+"_pattern", seconds.ReplaceAllString(text, "T")
		}
		s.texts[field] = append(s.texts[field], text)
	}
}

func (t *try) asRecorded() conformance.Seen {
	out := conformance.Seen{Server: t.server.name, Method: t.method, URI: t.target, BodyLen: len(t.body), Body: string(t.body)}
	if len(t.body) > 64 {
		out.Body = fmt.Sprintf("sum32=%08x", crc32.ChecksumIEEE(t.body))
	}
	if t.does.kind == keeps || t.does.kind == stales {
		reused := t.reused
		out.Reused = &reused
	}
	return out
}

func (s *seen) fields() map[string]any {
	got := map[string]any{"peers": s.peers, "upstream_status": s.upstream, "status": s.status, "status_all": s.status, "body": s.body,
		"received": s.received, "headers": s.header}
	for field, list := range s.texts {
		got[field] = list
	}
	return got
}

// headersOf is those fields of the answers that the recording has.
func headersOf(want json.RawMessage, answers []map[string][]string) map[string][][]string {
	var names map[string]any
	_ = json.Unmarshal(want, &names)
	out := map[string][][]string{}
	for name := range names {
		for _, a := range answers {
			out[name] = append(out[name], append([]string{}, a[strings.ToLower(name)]...))
		}
	}
	return out
}
