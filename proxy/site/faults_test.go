package site

import (
	"slices"
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/dialect"
	"github.com/upstrand/upstrand/confgen/topology"
)

// node makes a directive by hand: these texts would not get past the reader in part.
func node(line int, words ...string) *topology.Node {
	return &topology.Node{Name: words[0], Args: words[1:], File: "f", Line: line}
}

func block(n *topology.Node, of ...*topology.Node) *topology.Node {
	n.Block, n.HasBlock = of, true
	return n
}

// TestFaults: all of them at once, each with its place, the directive, the reason and what would be allowed.
func TestFaults(t *testing.T) {
	server := func(of ...*topology.Node) []*topology.Node { return []*topology.Node{block(node(1, "server"), of...)} }
	location := func(of ...*topology.Node) []*topology.Node {
		return server(block(node(2, "location", "/a"), of...))
	}
	for name, tc := range map[string]struct {
		nodes []*topology.Node
		want  []string // each a part of the fault of that place
	}{
		"an unknown variable, with the nearest name": {location(node(3, "return", "200", "$hots $request_ur")), []string{"f:3: return: no variable $hots; did you mean $host?", "f:3: return: no variable $request_ur; did you mean $request_uri?"}},
		"a variable of something far away":           {location(node(3, "return", "200", "$completely_different")), []string{"f:3: return: no variable $completely_different"}},
		"a refused variable":                         {location(node(3, "return", "200", "$document_root")), []string{"f:3: return: $document_root is about what is not served"}},
		"an open brace":                              {location(node(3, "return", "200", "${host")), []string{"the } of ${host is missing"}},
		"a $ alone":                                  {location(node(3, "return", "200", "5$")), []string{"a $ without the name of a variable"}},
		"set of a built-in variable":                 {location(node(3, "set", "$uri", "x")), []string{"f:3: set: $uri is built in"}},
		"set without $":                              {location(node(3, "set", "x", "x")), []string{`variable "x"; allowed: $name`}},
		"lookahead":                                  {server(block(node(2, "location", "~", "^/(?!x)"))), []string{"f:2: location: regular expression \"^/(?!x)\": lookaround (?!…) is not supported (RE2)"}},
		"lookbehind":                                 {location(node(3, "rewrite", "(?<=a)b", "/c")), []string{"lookaround (?<=…) is not supported (RE2)"}},
		"a backreference":                            {location(node(3, "rewrite", `(a)\1`, "/c")), []string{`the backreference \1 is not supported (RE2)`}},
		"an open group":                              {location(node(3, "rewrite", `(a`, "/c")), []string{"missing closing )"}},
		"a named group that is built in":             {location(node(3, "rewrite", `(?<host>a)`, "/c")), []string{`group "host"`}},
		"rewrite flag":                               {location(node(3, "rewrite", "a", "/c", "lasts")), []string{`flag "lasts"; allowed: last, break, redirect, permanent`}},
		"an empty replacement":                       {location(node(3, "rewrite", "a", "")), []string{"an empty replacement"}},
		"return status":                              {location(node(3, "return", "2000")), []string{`status "2000"`}},
		"return words":                               {location(node(3, "return", "there")), []string{`status "there"`}},
		"if on a file":                               {location(block(node(3, "if", "-f", "$uri"))), []string{"there are no files to test"}},
		"if operator":                                {location(block(node(3, "if", "$uri", "==", "x"))), []string{`operator "=="; allowed: ($a), ($a = text)`}},
		"if without variable":                        {location(block(node(3, "if", "x"))), []string{`condition "x"`}},
		"if with too much":                           {location(block(node(3, "if", "$uri", "=", "x", "y"))), []string{"condition"}},
		"error_page status":                          {location(node(3, "error_page", "200", "299", "499", "600", "/x")), []string{`status "200"`, `status "299"`, `status "499"`, `status "600"`}},
		"error_page answer":                          {location(node(3, "error_page", "404", "=x", "/x")), []string{`status "=x"`}},
		"try_files code":                             {location(node(3, "try_files", "a", "=x")), []string{`status "x"`}},
		"a flag":                                     {server(node(2, "merge_slashes", "yes")), []string{`merge_slashes: "yes"; allowed: on, off`}},
		"a duplicate":                                {location(node(3, "default_type", "a"), node(4, "default_type", "b")), []string{"f:4: default_type: is duplicate"}},
		"a duplicate location":                       {server(block(node(2, "location", "/a")), block(node(3, "location", "/a")), block(node(4, "location", "=", "/a"))), []string{"f:3: location: a duplicate location \"/a\"; the first is at f:2; allowed: each name once"}},
		"a location outside":                         {location(block(node(3, "location", "/b"))), []string{`"/b" is outside location "/a"`}},
		"inside an exact one":                        {server(block(node(2, "location", "= /a"), block(node(3, "location", "/a/b")))), nil},
		"a named one inside":                         {location(block(node(3, "location", "@n"))), []string{"can stand in a server only"}},
		"location modifier":                          {server(block(node(2, "location", "==", "/a"))), []string{`modifier "=="; allowed: =, ~, ~*, ^~ or none`}},
		"listen: ssl":                                {server(node(2, "listen", "443", "ssl")), []string{"no ssl_certificate is said for the ssl of 0.0.0.0:443"}},
		"access_log: gzip":                           {server(node(2, "access_log", "/dev/null", "combined", "gzip")), []string{"not compressed"}},
		"listen: several":                            {server(node(2, "listen", "443", "spdy", "quic", "what")), []string{"SPDY", "HTTP/3", `parameter "what"`}},
		"listen: unix":                               {server(node(2, "listen", "unix:/x")), []string{"not served"}},
		"listen: port":                               {server(node(2, "listen", "1.2.3.4:0"), node(3, "listen", "70000"), node(4, "listen", "[::1]:x")), []string{`port "0"`, `"70000"`, `port "x"`}},
		"listen twice":                               {server(node(2, "listen", "80"), node(3, "listen", "*:80")), []string{"f:3: listen: a duplicate listen"}},
		"two default servers":                        {append(server(node(2, "listen", "80", "default_server")), block(node(4, "server"), node(5, "listen", "80", "default_server"))), []string{"f:5: listen: a duplicate default server"}},
		"server_name":                                {server(node(2, "server_name", "a.*.b", "*x", "a/b", "~(")), []string{"a.*.b", "*x", "a/b", "missing closing )"}},
		"map":                                        {[]*topology.Node{block(node(1, "map", "$host", "m"))}, []string{`variable "m"`}},
		"map lines":                                  {[]*topology.Node{block(node(1, "map", "$hots", "$m"), node(2, "a", "1"), node(3, "A", "2"), node(4, "~(", "3"), node(5, "b"), node(6, "default", "1"), node(7, "default", "$x"))}, []string{"f:3: A: \"A\" stands twice", "f:4: ~(", "f:5: b: has 0 values", "f:7: default: there is a default", "no variable $hots", "no variable $x"}},
		"map of a built-in variable":                 {[]*topology.Node{block(node(1, "map", "$uri", "$host"))}, []string{"$host is built in"}},
		"a directive of elsewhere":                   {append(server(), node(5, "location", "/")), []string{"f:5: location: can't stand here"}},
		"an unknown directive":                       {location(node(3, "proxy_pas", "x")), []string{"f:3: proxy_pas: is not known here"}},
		"files by alias":                             {location(node(3, "alias", "/srv/")), []string{"files are not served here"}},
		"files by root":                              {server(node(2, "root", "/srv"), block(node(3, "location", "/a")), block(node(4, "location", "/"), node(5, "return", "204"))), []string{`f:3: location: files are not served here, and root /srv would serve them in location "/a"`}},
		"files of no location":                       {server(node(2, "root", "/srv"), block(node(4, "location", "/b"), node(5, "return", "204"))), []string{"f:2: root: files are not served here: a path that no location takes"}},
		"an upstrand that is not declared":           {location(node(3, "return", "200", "$upstrand_none $upstrand_path")), []string{"f:3: return: $upstrand_none: no upstrand \"none\" is declared"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, faults := Compile(tc.nodes, Options{Upstrands: func(name string) bool { return name == "us" }})
			if (s == nil) != (len(faults) > 0) {
				t.Errorf("a site: %v, with %d faults", s != nil, len(faults))
			}
			if tc.want == nil {
				return
			}
			if len(faults) != len(tc.want) {
				t.Errorf("%d faults, want %d", len(faults), len(tc.want))
			}
			for i, f := range faults {
				if i >= len(tc.want) || !strings.Contains(f.Error(), tc.want[i]) {
					t.Errorf("fault %d: %s", i, f.Error())
				}
			}
		})
	}
}

// TestEveryDirectiveHasASetter: what the reader lets through is carried out.
func TestEveryDirectiveHasASetter(t *testing.T) {
	elsewhere := []string{"http", "include", "upstream", "upstrand", "resolver", "resolver_timeout"}
	known := Directives()
	for _, d := range dialect.Directives() {
		if d.Class != dialect.Supported || d.In&(dialect.HTTP|dialect.Server|dialect.Location|dialect.LocationIf) == 0 || slices.Contains(elsewhere, d.Name) {
			continue
		}
		if !slices.Contains(known, d.Name) {
			t.Errorf("%s is read and has no setter", d.Name)
		}
	}
}
