// Package settings declares flags in titled groups, gives each an environment variable, and checks all of them at once.
//
// A setting is looked up in this order: flag, environment variable, default. Values that can't be used are collected
// instead of stopping at the first, so that one run tells an operator everything that is wrong.
//
// It is not a configuration-file reader and holds no secrets: a password is given as the path of a file, so that neither
// --help, nor --check-config, nor a process list can show it.
package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// Prefix begins the name of every environment variable that this project reads.
const Prefix = "UPSTRAND_"

// EnvName is the environment variable of a flag: --kafka-brokers is UPSTRAND_KAFKA_BROKERS.
func EnvName(flag string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Set is the flags of one command, with the checks that look at more than one of them.
// It is filled before the command line is parsed and read after; not safe for concurrent use.
type Set struct {
	fs     *pflag.FlagSet
	checks []func() Problems
}

// NewSet declares flags on fs, in the order in which they are declared.
func NewSet(fs *pflag.FlagSet) *Set {
	fs.SortFlags = false
	return &Set{fs: fs}
}

// Group begins (or goes on with) the flags that --help shows under title.
func (s *Set) Group(title string) *Group { return &Group{set: s, title: title} }

// Check adds a check that runs after every flag has its value: files that must exist, flags that need each other. A
// flag whose value could not be used has its default then. It must leave nothing changed, since --check-config runs it too.
func (s *Set) Check(f func() Problems) { s.checks = append(s.checks, f) }

// Hide keeps a flag out of --help where yes; it still works.
func (s *Set) Hide(yes bool, flag string) { s.fs.Lookup(flag).Hidden = yes }

// NoEnv keeps the environment from setting a flag.
func (s *Set) NoEnv(flag string) {
	f := s.fs.Lookup(flag)
	f.Annotations[NoEnv] = nil
}

// Problems lists every value that can't be used, in the order of declaration, then what the checks found. A flag is
// named once: what a check finds wrong with a flag that is in the list already is left out, as it may follow from that.
func (s *Set) Problems() Problems {
	var all Problems
	named := map[string]bool{"": false}
	add := func(p Problem) {
		if !named[p.Flag] {
			all, named[p.Flag] = append(all, p), p.Flag != ""
		}
	}
	s.fs.VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*value); ok && v.problem != nil {
			add(Problem{Flag: f.Name, Value: v.bad, Allowed: v.problem.Error()})
		}
	})
	for _, check := range s.checks {
		for _, p := range check() {
			add(p)
		}
	}
	return all
}

// Has reports whether there is such a flag.
func (s *Set) Has(flag string) bool { return s.fs.Lookup(flag) != nil }

// Text is the value of a flag as it was given, or its default; empty when there is no such flag.
func (s *Set) Text(flag string) string {
	f := s.fs.Lookup(flag)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

// Given reports whether a flag has its value from the command line or the environment, not its default.
func (s *Set) Given(flag string) bool {
	f := s.fs.Lookup(flag)
	return f != nil && f.Changed
}

// Problem is one setting that can't be used.
type Problem struct {
	Flag    string // without dashes; empty when it is about more than one
	Value   string // as given; empty when it is missing
	Allowed string // what would be good, or what went wrong
}

func (p Problem) String() string {
	if p.Flag == "" {
		return p.Allowed
	}
	if p.Value == "" || strings.HasPrefix(p.Allowed, p.Value+":") { // the value is not there, or said by what follows
		return "--" + p.Flag + " (" + EnvName(p.Flag) + "): " + p.Allowed
	}
	return "--" + p.Flag + " (" + EnvName(p.Flag) + ") is " + quote(p.Value) + ": " + p.Allowed
}

// Problems is everything that is wrong with the settings of a command.
type Problems []Problem

// Error has one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return "settings that can't be used:\n  " + strings.Join(lines, "\n  ")
}

// Err is nil when there are no problems.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// quote shows a value as the operator gave it, cut to what fits on a line.
func quote(v string) string {
	const most = 120
	if len(v) > most {
		v = v[:most] + "…"
	}
	return `"` + v + `"`
}
