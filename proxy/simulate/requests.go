package simulate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
)

// template is what a request line sends.
type template struct {
	method  string
	targets []string // sent in turn
	times   int      // rounds over the targets
	from    netip.Prefix
	host    string
	headers []header
	body    *string
	local   netip.AddrPort // where requests arrive; zero: at the scheme's port
	secure  bool

	counts bool               // {n} stands somewhere
	made   []*forward.Request // for each target, where it does not
}

type header struct{ name, value string }

// maxTimes bounds the requests of one line.
const maxTimes = 100_000_000

// counter is what stands for the number of the request within its line, from 0.
const counter = "{n}"

func parseRequest(_ *Scenario, args []string) (step, error) {
	t, err := parseTemplate(args)
	if err != nil {
		return nil, err
	}
	return &requestStep{template: t}, nil
}

func parseHold(_ *Scenario, args []string) (step, error) {
	if len(args) < 3 {
		return nil, errUsage
	}
	t, err := parseTemplate(args[1:])
	switch {
	case err != nil:
		return nil, err
	case t.count() != 1:
		return nil, errors.New("holds one request")
	}
	return &requestStep{template: t, hold: args[0]}, nil
}

func parseTemplate(args []string) (*template, error) {
	if len(args) < 2 {
		return nil, errUsage
	}
	t := &template{method: args[0], times: 1, host: "localhost", from: loopback}
	if !isMethod(t.method) {
		return nil, fmt.Errorf("%q: want a method, such as GET", t.method)
	}
	for _, arg := range args[1:] {
		if strings.HasPrefix(arg, "/") || arg == "*" {
			if !isTarget(arg) {
				return nil, fmt.Errorf("%q: a target has no blanks and no control characters", arg)
			}
			t.targets = append(t.targets, arg)
			continue
		}
		key, value, _ := strings.Cut(arg, "=")
		set := options[key]
		if set == nil {
			return nil, fmt.Errorf("%q: want a target that begins with /, times=N, from=IP, host=NAME, port=N, scheme=https, header=NAME:VALUE or body=TEXT", arg)
		}
		if err := set(t, value); err != nil {
			return nil, err
		}
	}
	if len(t.targets) == 0 {
		return nil, errUsage
	}
	if !t.local.IsValid() {
		t.local = arrival
		if t.secure {
			t.local = netip.AddrPortFrom(arrival.Addr(), portHTTPS)
		}
	}
	if t.times > maxTimes/len(t.targets) {
		return nil, fmt.Errorf("at most %d requests in one line", maxTimes)
	}
	t.counts = strings.Contains(strings.Join(append(t.targets, t.host), " "), counter)
	for _, h := range t.headers {
		t.counts = t.counts || strings.Contains(h.value, counter)
	}
	return t, nil
}

func (t *template) count() int { return len(t.targets) * t.times }

var options = map[string]func(*template, string) error{
	"times": func(t *template, v string) (err error) { t.times, err = number(v, 1, maxTimes); return err },
	"host": func(t *template, v string) error {
		if v == "" || !isTarget(v) {
			return fmt.Errorf("host %q: want a name", v)
		}
		t.host = v
		return nil
	},
	"from": func(t *template, v string) error {
		if a, err := netip.ParseAddr(v); err == nil && a.Zone() == "" {
			t.from = netip.PrefixFrom(a, a.BitLen())
			return nil
		}
		p, err := netip.ParsePrefix(v)
		if err != nil {
			return fmt.Errorf("from %q: want an address, or a network such as 10.0.0.0/8 whose addresses come in turn", v)
		}
		t.from = p.Masked()
		return nil
	},
	"port": func(t *template, v string) error {
		n, err := number(v, 1, 65535)
		t.local = netip.AddrPortFrom(arrival.Addr(), uint16(n))
		return err
	},
	"scheme": func(t *template, v string) error {
		t.secure = v == "https"
		if v != "http" && v != "https" {
			return fmt.Errorf("scheme %q: want http or https", v)
		}
		return nil
	},
	"header": func(t *template, v string) error {
		name, value, ok := strings.Cut(v, ":")
		if !ok || !isMethod(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("header %q: want NAME:VALUE", v)
		}
		t.headers = append(t.headers, header{name, strings.TrimSpace(value)})
		return nil
	},
	"body": func(t *template, v string) error {
		if n, text, ok := strings.Cut(v, "*"); ok {
			if times, err := number(n, 1, 1<<20); err == nil {
				if len(text)*times > 64<<20 {
					return errors.New("body: at most 64 MiB")
				}
				v = strings.Repeat(text, times)
			}
		}
		t.body = &v
		return nil
	},
}

// isMethod tells whether s is a token, which methods and names of fields are.
func isMethod(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isTarget(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// request makes the n-th request of the line. What is the same in all of them is made once: nobody changes a request.
func (t *template) request(n int) *forward.Request {
	if t.made == nil {
		t.made = make([]*forward.Request, len(t.targets))
	}
	i := n % len(t.targets)
	r := t.made[i]
	if r == nil {
		r = t.fresh(t.targets[i], n)
		if !t.counts {
			t.made[i] = r
		}
	}
	out := *r
	out.Remote = nthAddr(t.from, n)
	if t.body != nil && out.Length > 0 {
		out.Body = &content{bytes: []byte(*t.body)}
	}
	return &out
}

func (t *template) fresh(target string, n int) *forward.Request {
	r := &forward.Request{
		Method: []byte(t.method), Authority: []byte(t.nth(t.host, n)), Target: []byte(t.nth(target, n)),
		RemotePort: 50000, Local: t.local, Proto: "HTTP/1.1", Secure: t.secure,
	}
	r.Fields = append(r.Fields, forward.Field{Name: []byte("Host"), Value: r.Authority})
	if t.secure {
		r.TLS = handshake(string(r.Authority))
	}
	for _, h := range t.headers {
		r.Fields = append(r.Fields, field(h.name, t.nth(h.value, n)))
	}
	if t.body != nil {
		r.Length = int64(len(*t.body))
		r.Fields = append(r.Fields, field("Content-Length", strconv.Itoa(len(*t.body))))
	}
	return r
}

// handshake is what a client without a certificate comes to that asks for the host's name.
func handshake(host string) *tls.ConnectionState {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		name = "" // addresses are not sent
	}
	return &tls.ConnectionState{Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256, HandshakeComplete: true, ServerName: name}
}

// arrival is where requests arrive unless told otherwise. A configuration that does not listen there takes them as
// those of its first listen.
var (
	arrival  = netip.MustParseAddrPort("127.0.0.1:80")
	loopback = netip.PrefixFrom(arrival.Addr(), 32)
)

func (t *template) nth(text string, n int) string {
	if !t.counts {
		return text
	}
	return strings.ReplaceAll(text, counter, strconv.Itoa(n))
}

// nthAddr is the n-th address of a network, beginning again after its last one.
func nthAddr(p netip.Prefix, n int) netip.Addr {
	free := p.Addr().BitLen() - p.Bits()
	if free == 0 {
		return p.Addr()
	}
	if free < 63 {
		n %= 1 << free
	}
	raw := p.Addr().AsSlice()
	for i := len(raw) - 1; i >= 0 && n > 0; i-- {
		n += int(raw[i])
		raw[i] = byte(n)
		n >>= 8
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}
