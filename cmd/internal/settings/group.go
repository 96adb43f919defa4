package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// groupKey marks a flag with the title that --help shows it under.
const groupKey = "upstrand_group"

// Group declares flags that belong together. Each method writes the default to *p at once and the given value when the
// command line or the environment has one; a value that can't be used leaves *p as it was and shows in Set.Problems.
type Group struct {
	set   *Set
	title string
}

// add declares one flag. kind is the placeholder that --help shows, such as DURATION.
func (g *Group) add(name, kind, def, usage string, parse func(string) error) *pflag.Flag {
	f := g.set.fs.VarPF(&value{kind: kind, text: def, parse: parse}, name, "", usage)
	f.Annotations = map[string][]string{groupKey: {g.title}}
	return f
}

// String declares free text. Empty is allowed.
func (g *Group) String(p *string, name, def, usage string) {
	*p = def
	g.add(name, "TEXT", def, usage, func(s string) error { *p = s; return nil })
}

// Match declares text that ok must accept; allowed says what it accepts.
func (g *Group) Match(p *string, name, def, usage, allowed string, ok func(string) bool) {
	*p = def
	g.add(name, "TEXT", def, usage, func(s string) error {
		if !ok(s) {
			return errors.New("allowed: " + allowed)
		}
		*p = s
		return nil
	})
}

// Choice declares one of a few words.
func (g *Group) Choice(p *string, name, def, usage string, words ...string) {
	*p = def
	g.add(name, strings.Join(words, "|"), def, usage, func(s string) error {
		for _, w := range words {
			if s == w {
				*p = s
				return nil
			}
		}
		return errors.New("allowed: " + strings.Join(words, ", "))
	})
}

// Bool declares a switch: --name, --name=false, or true/false in the environment.
func (g *Group) Bool(p *bool, name string, def bool, usage string) {
	*p = def
	f := g.add(name, "", strconv.FormatBool(def), usage, func(s string) error {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("allowed: true, false")
		}
		*p = b
		return nil
	})
	f.NoOptDefVal = "true"
}

// Int declares a whole number from low to high.
func (g *Group) Int(p *int, name string, def, low, high int, usage string) {
	*p = def
	g.add(name, "N", strconv.Itoa(def), usage, func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return fmt.Errorf("allowed: a whole number from %d to %d", low, high)
		}
		*p = n
		return nil
	})
}

// Float declares a number from low to high.
func (g *Group) Float(p *float64, name string, def, low, high float64, usage string) {
	*p = def
	g.add(name, "N", strconv.FormatFloat(def, 'g', -1, 64), usage, func(s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || !(n >= low && n <= high) {
			return fmt.Errorf("allowed: a number from %g to %g", low, high)
		}
		*p = n
		return nil
	})
}

// Duration declares a length of time from low to high, written as Go writes it: 500ms, 10s, 1m30s.
func (g *Group) Duration(p *time.Duration, name string, def, low, high time.Duration, usage string) {
	*p = def
	g.add(name, "DURATION", short(def), usage, func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < low || d > high {
			return fmt.Errorf("allowed: a duration from %s to %s, such as %s", short(low), short(high), short(def))
		}
		*p = d
		return nil
	})
}

// Listen declares the address of a listening socket: host:port, :port for all interfaces, port 0 for any free one.
// Where off is true, the empty value means that nothing listens.
func (g *Group) Listen(p *string, name, def string, off bool, usage string) {
	*p = def
	g.add(name, "HOST:PORT", def, usage, func(s string) error {
		if s == "" && off {
			*p = s
			return nil
		}
		if err := hostPort(s, true); err != nil {
			return err
		}
		*p = s
		return nil
	})
}

// Addresses declares a list of host:port, separated by commas; the flag may also be repeated. At least one is needed.
func (g *Group) Addresses(p *[]string, name, def, usage string) {
	*p = split(def)
	first := true
	g.add(name, "HOST:PORT,…", def, usage, func(s string) error {
		list := split(s)
		if len(list) == 0 {
			return errors.New("allowed: one or more host:port, separated by commas")
		}
		for _, a := range list {
			if err := hostPort(a, false); err != nil {
				return fmt.Errorf("%w (of %q)", err, a)
			}
		}
		if first {
			*p, first = nil, false
		}
		*p = append(*p, list...)
		return nil
	})
}

// Words declares a list of words, separated by commas; the flag may also be repeated.
func (g *Group) Words(p *[]string, name, usage string) {
	g.add(name, "WORD,…", "", usage, func(s string) error {
		*p = append(*p, split(s)...)
		return nil
	})
}

// Pairs declares a map of key=value pairs, separated by commas; the flag may also be repeated.
func (g *Group) Pairs(p *map[string]string, name, usage string) {
	g.add(name, "KEY=VALUE,…", "", usage, func(s string) error {
		got := map[string]string{}
		for _, pair := range split(s) {
			k, v, ok := strings.Cut(pair, "=")
			if !ok || k == "" {
				return fmt.Errorf("allowed: key=value pairs, separated by commas (not %q)", pair)
			}
			got[k] = v
		}
		if *p == nil {
			*p = map[string]string{}
		}
		for k, v := range got {
			(*p)[k] = v
		}
		return nil
	})
}

// URL declares an absolute http or https URL.
func (g *Group) URL(p *string, name, def, usage string) {
	*p = def
	g.add(name, "URL", def, usage, func(s string) error {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return errors.New("allowed: an http:// or https:// URL")
		}
		*p = s
		return nil
	})
}

// IP declares an IP address; empty is allowed.
func (g *Group) IP(p *string, name, def, usage string) {
	*p = def
	g.add(name, "IP", def, usage, func(s string) error {
		if _, err := netip.ParseAddr(strings.Trim(s, "[]")); s != "" && err != nil {
			return errors.New("allowed: an IPv4 or IPv6 address")
		}
		*p = s
		return nil
	})
}

// File declares the path of a file that must be readable when it is given. look says what is wrong with its content; nil
// when that is not looked at.
func (g *Group) File(p *string, name, usage string, look func(path string) error) {
	g.Path(p, name, "FILE", usage)
	g.set.Check(func() Problems { return fileProblems(name, *p, look) })
}

// Dir declares the path of a folder that is written to, and made when it does not exist.
func (g *Group) Dir(p *string, name, usage string) {
	g.Path(p, name, "DIR", usage)
	g.set.Check(func() Problems { return dirProblems(name, *p) })
}

// Path declares a path that is not looked at.
func (g *Group) Path(p *string, name, kind, usage string) {
	g.add(name, kind, "", usage, func(s string) error { *p = s; return nil })
}

// hostPort checks host:port. A listening socket may leave out the host and may use port 0.
func hostPort(s string, listen bool) error {
	allowed := errors.New("allowed: host:port, such as 127.0.0.1:9092 or [::1]:9092")
	if listen {
		allowed = errors.New("allowed: host:port or :port, such as 127.0.0.1:8080; port 0 takes a free one")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, " /") || (host == "" && !listen) {
		return allowed
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || (n == 0 && !listen) {
		return allowed
	}
	return nil
}

// split cuts at commas and drops empty parts and blanks around them.
func split(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// short writes a duration without the zero units that time.Duration.String appends: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
