package topology

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of what can be published; they hold for declared and derived content alike.
const (
	maxName   = 256
	maxPath   = 1024
	maxWeight = 1 << 24 // of one instance, so that sums of weights stay far from overflow
)

// The defaults of nginx's server parameters.
const (
	DefaultMaxFails    = 1
	DefaultFailTimeout = 10 * time.Second
)

// Validate reports all that is wrong with a Config: names, addresses, parameters, order, and routes and upstrands that
// lead to nothing. It does not read the directives of upstreams: Expand does, and reports what it can't use.
func (c *Config) Validate() error {
	var errs []error
	for i, s := range c.Services {
		errs = append(errs, s.validate())
		if i > 0 && c.Services[i-1].Name >= s.Name {
			errs = append(errs, fmt.Errorf("topology: service %s: out of order or twice", s.Name))
		}
	}
	errs = append(errs, validateGroup(c.Upstreams, Upstream.validate, compareUpstreams, func(u Upstream) string { return UpstreamKey(u.Name) }))
	errs = append(errs, validateGroup(c.Upstrands, Upstrand.validate, compareUpstrands, func(u Upstrand) string { return UpstrandKey(u.Name) }))
	errs = append(errs, validateGroup(c.Routes, Route.validate, compareRoutes, func(r Route) string { return RouteKey(r.Host, r.Path) }))
	errs = append(errs, c.validateTargets())
	return errors.Join(errs...)
}

func validateGroup[T any](items []T, validate func(T) error, compare func(a, b T) int, key func(T) string) error {
	var errs []error
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		errs = append(errs, validate(item))
		k := key(item)
		if seen[k] {
			errs = append(errs, fmt.Errorf("topology: %s: twice", k))
		}
		seen[k] = true
		if i > 0 && compare(items[i-1], item) > 0 {
			errs = append(errs, fmt.Errorf("topology: %s: out of order", k))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateTargets() error {
	var errs []error
	upstreams := make(map[string]bool, len(c.Upstreams))
	for _, u := range c.Upstreams {
		upstreams[u.Name] = true
	}
	upstrands := make(map[string]bool, len(c.Upstrands))
	for _, u := range c.Upstrands {
		upstrands[u.Name] = true
	}
	for _, r := range c.Routes {
		if r.Upstream != "" && !upstreams[r.Upstream] {
			errs = append(errs, fmt.Errorf("topology: route %s%s: no upstream %s", r.Host, r.Path, r.Upstream))
		}
		if r.Upstrand != "" && !upstrands[r.Upstrand] {
			errs = append(errs, fmt.Errorf("topology: route %s%s: no upstrand %s", r.Host, r.Path, r.Upstrand))
		}
	}
	return errors.Join(errs...)
}

// The orders in which a Config stands. Derived upstreams follow the declared ones.

func compareServices(a, b Service) int { return cmp.Compare(a.Name, b.Name) }

func compareUpstreams(a, b Upstream) int {
	return compareRanked(a.Origin, b.Origin, a.Rank, b.Rank, a.Name, b.Name)
}

func compareUpstrands(a, b Upstrand) int {
	return compareRanked(a.Origin, b.Origin, a.Rank, b.Rank, a.Name, b.Name)
}

func compareRanked(ao, bo Origin, ar, br int, an, bn string) int {
	place := func(o Origin) int {
		if o == Declared {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(place(ao), place(bo)), cmp.Compare(ar, br), cmp.Compare(an, bn))
}

func compareRoutes(a, b Route) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path))
}

func compareInstances(a, b Instance) int {
	return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
}

func (s Service) validate() error {
	if err := validateName("service", s.Name); err != nil {
		return err
	}
	if strings.Contains(s.Name, "/") {
		return fmt.Errorf("topology: service %q: a name without / is wanted", clip(s.Name))
	}
	var errs []error
	ids := make(map[string]bool, len(s.Instances))
	for i, in := range s.Instances {
		if err := in.validate(); err != nil {
			errs = append(errs, fmt.Errorf("topology: instance %s/%s: %w", s.Name, clip(in.ID), err))
		}
		if ids[in.ID] {
			errs = append(errs, fmt.Errorf("topology: instance %s/%s: twice", s.Name, clip(in.ID)))
		}
		ids[in.ID] = true
		if i > 0 && compareInstances(s.Instances[i-1], in) > 0 {
			errs = append(errs, fmt.Errorf("topology: instance %s/%s: out of order", s.Name, clip(in.ID)))
		}
	}
	return errors.Join(errs...)
}

func (in Instance) validate() error {
	var errs []error
	if err := validateName("id", in.ID); err != nil {
		errs = append(errs, err)
	}
	if in.Scheme != "" && in.Scheme != "http" && in.Scheme != "https" {
		errs = append(errs, fmt.Errorf("scheme %q: want http or https", clip(in.Scheme)))
	}
	if err := validateAddr(in.Addr); err != nil {
		errs = append(errs, err)
	}
	if in.Weight < 0 || in.Weight > maxWeight {
		errs = append(errs, fmt.Errorf("weight %d: want 0 to %d", in.Weight, maxWeight))
	}
	if in.MaxConns < 0 {
		errs = append(errs, fmt.Errorf("max_conns %d: want 0 or more", in.MaxConns))
	}
	if in.MaxFails != nil && *in.MaxFails < 0 {
		errs = append(errs, fmt.Errorf("max_fails %d: want 0 or more", *in.MaxFails))
	}
	if in.FailTimeout < 0 || in.SlowStart < 0 {
		errs = append(errs, fmt.Errorf("fail_timeout %s, slow_start %s: want 0 or more", in.FailTimeout, in.SlowStart))
	}
	for _, text := range append([]string{in.Zone, in.Version}, in.Tags...) {
		if err := validateText(text); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// validateAddr wants the one canonical form ip:port, so that the same address is the same text everywhere.
func validateAddr(addr string) error {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("addr %q: want ip:port", clip(addr))
	}
	if ap.Port() == 0 || ap.String() != addr || ap.Addr().Zone() != "" {
		return fmt.Errorf("addr %q: want it in its canonical form, with a port from 1", clip(addr))
	}
	return nil
}

func (u Upstream) validate() error {
	return validateBlock("upstream", u.Name, u.Origin, u.Rank, u.Directives)
}

func (u Upstrand) validate() error {
	return validateBlock("upstrand", u.Name, u.Origin, u.Rank, u.Directives)
}

func validateBlock(what, name string, origin Origin, rank int, directives []Directive) error {
	if err := validateName(what, name); err != nil {
		return err
	}
	if err := validateOrigin(origin); err != nil {
		return fmt.Errorf("topology: %s %s: %w", what, name, err)
	}
	if rank < 0 || (origin == Derived && rank != 0) {
		return fmt.Errorf("topology: %s %s: rank %d: only a declared one has a rank, from 0", what, name, rank)
	}
	for i, d := range directives {
		if len(d) == 0 || d[0] == "" {
			return fmt.Errorf("topology: %s %s: directive %d is empty", what, name, i)
		}
		if i := slices.IndexFunc(d, func(s string) bool { return validateText(s) != nil }); i >= 0 {
			return fmt.Errorf("topology: %s %s: directive %s: %w", what, name, clip(d[0]), validateText(d[i]))
		}
	}
	return nil
}

func validateOrigin(o Origin) error {
	if o != Derived && o != Declared {
		return fmt.Errorf("origin %q: want %s or %s", clip(string(o)), Derived, Declared)
	}
	return nil
}

func (r Route) validate() error {
	where := clip(r.Host + r.Path)
	if err := validateOrigin(r.Origin); err != nil {
		return fmt.Errorf("topology: route %s: %w", where, err)
	}
	if !strings.HasPrefix(r.Path, "/") || len(r.Path) > maxPath {
		return fmt.Errorf("topology: route %q: want a path that begins with / and has at most %d bytes", where, maxPath)
	}
	if strings.Contains(r.Host, "/") || len(r.Host) > maxName {
		return fmt.Errorf("topology: route %q: bad host", where)
	}
	for _, text := range []string{r.Host, r.Path, r.Upstream, r.Upstrand} {
		if err := validateText(text); err != nil {
			return fmt.Errorf("topology: route %q: %w", where, err)
		}
	}
	if (r.Upstream == "") == (r.Upstrand == "") {
		return fmt.Errorf("topology: route %s: want either an upstream or an upstrand", where)
	}
	return nil
}

func validateName(what, name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("topology: %s %q: want a name of 1 to %d bytes", what, clip(name), maxName)
	}
	if err := validateText(name); err != nil {
		return fmt.Errorf("topology: %s: %w", what, err)
	}
	return nil
}

// validateText keeps control bytes and broken UTF-8 out: JSON would not carry the latter unchanged.
func validateText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not UTF-8", clip(s))
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
		return fmt.Errorf("%q has a control character", clip(s))
	}
	return nil
}
