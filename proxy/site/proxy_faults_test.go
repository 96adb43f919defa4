package site

import (
	"strings"
	"testing"

	"github.com/upstrand/upstrand/confgen/topology"
)

// TestFaultsOfProxying: what can't be used says where, why, and what would do.
func TestFaultsOfProxying(t *testing.T) {
	in := func(of ...*topology.Node) []*topology.Node {
		return []*topology.Node{block(node(1, "server"), block(node(2, "location", "/a"), of...))}
	}
	under := func(args []string, of ...*topology.Node) []*topology.Node {
		return []*topology.Node{block(node(1, "server"), block(node(2, append([]string{"location"}, args...)...), of...))}
	}
	one := func(words ...string) []*topology.Node { return in(node(3, words...)) }
	for name, tc := range map[string]struct {
		nodes []*topology.Node
		want  []string
	}{
		"no scheme":           {one("proxy_pass", "u"), []string{`f:3: proxy_pass: "u"; allowed: http://NAME`}},
		"another scheme":      {one("proxy_pass", "ftp://u"), []string{`"ftp://u"`}},
		"no host":             {one("proxy_pass", "http:///x"), []string{`"http:///x"`}},
		"unix":                {one("proxy_pass", "http://unix:/run/x.sock"), []string{"unix sockets are not reached"}},
		"port":                {one("proxy_pass", "http://h:99999"), []string{`host "h:99999"`}},
		"port of an upstream": {one("proxy_pass", "http://u:81"), []string{`upstream "u" is declared and can't have a port; allowed: http://u`}},
		"part in a regex":     {under([]string{"~", "x"}, node(3, "proxy_pass", "http://u/x")), []string{`a URI part can't stand in a location with a regular expression`}},
		"part in a named one": {under([]string{"@x"}, node(3, "proxy_pass", "http://u/")), []string{`a URI part can't stand`}},
		"part in if":          {in(block(node(3, "if", "($uri)"), node(4, "proxy_pass", "http://u/"))), []string{"f:4: proxy_pass: a URI part can't stand"}},
		"next_upstream":       {one("proxy_next_upstream", "error", "http_418"), []string{`"http_418"; allowed: error, timeout`}},
		"tries":               {one("proxy_next_upstream_tries", "-1"), []string{`"-1"; allowed: a number, at least 0`}},
		"version":             {one("proxy_http_version", "3"), []string{`"3"; allowed: 1.0, 1.1, 2`}},
		"time":                {one("proxy_read_timeout", "soon"), []string{"soon"}},
		"size":                {one("proxy_buffer_size", "8x"), []string{"8x"}},
		"field name":          {one("proxy_set_header", "A B", "x"), []string{`"A B" is no name of a header field`}},
		"added field name":    {one("add_header", "A:", "x"), []string{`"A:" is no name of a header field`}},
		"added field flag":    {one("add_header", "A", "x", "ever"), []string{`"ever"; allowed: always`}},
		"redirect":            {one("proxy_redirect", "on"), []string{`"on"; allowed: off, default, or FROM TO`}},
		"redirect pattern":    {one("proxy_redirect", "~(", "x"), []string{"missing closing )"}},
		"cookie flag":         {one("proxy_cookie_flags", "x", "sekure"), []string{`"sekure"; allowed: secure, httponly`}},
		"ignored field":       {one("proxy_ignore_headers", "X-A"), []string{`"X-A"; allowed: X-Accel-Redirect`}},
		"expires":             {one("expires", "soon"), []string{`"soon"; allowed: off, epoch`}},
		"expires modified":    {one("expires", "modified", "max"), []string{`"max"`}},
		"expires before":      {one("expires", "x", "1h"), []string{`"x"`}},
		"gzip level":          {one("gzip_comp_level", "10"), []string{`"10"; allowed: 1 to 9`}},
		"gzip proxied":        {one("gzip_proxied", "all"), []string{`"all"; allowed: off, expired`}},
		"gzip version":        {one("gzip_http_version", "2"), []string{`"2"; allowed: 1.0, 1.1`}},
		"gzip pattern":        {one("gzip_disable", "("), []string{"missing closing )"}},
		"allow":               {one("allow", "some.host"), []string{`"some.host"; allowed: an address`}},
		"deny":                {one("deny", "10.0.0.0/33"), []string{`"10.0.0.0/33"`}},
		"satisfy":             {one("satisfy", "some"), []string{`"some"; allowed: all, any`}},
		"real ip from":        {one("set_real_ip_from", "some.host"), []string{`"some.host"`}},
		"log to syslog":       {one("access_log", "syslog:server=x"), []string{"syslog is not written to"}},
		"log path":            {one("access_log", "/tmp/$host"), []string{"a path with variables is not built"}},
		"log format":          {one("access_log", "/dev/stderr", "nix"), []string{`format "nix" is not defined; allowed: combined`}},
		"log option":          {one("access_log", "/dev/stderr", "combined", "gzip"), []string{`"gzip": lines are not compressed`}},
		"log flush":           {one("access_log", "/dev/stderr", "combined", "flush=1s"), []string{"flush= needs buffer="}},
		"log buffer":          {one("access_log", "/dev/stderr", "combined", "buffer=x"), []string{"x"}},
		"log folder":          {one("access_log", "/nowhere/at/all/x.log"), []string{"open the access log"}},
		"format twice":        {[]*topology.Node{node(1, "log_format", "a", "x"), node(2, "log_format", "a", "y"), node(3, "log_format", "combined", "z")}, []string{`f:2: log_format: format "a" stands already`, `format "combined" stands already`}},
		"format escape":       {[]*topology.Node{node(1, "log_format", "a", "escape=html", "x")}, []string{`"escape=html"; allowed: escape=default`}},
		"format variable":     {[]*topology.Node{node(1, "log_format", "a", "$upstream_adr")}, []string{"no variable $upstream_adr; did you mean $upstream_addr?"}},
		"buffers":             {[]*topology.Node{node(1, "large_client_header_buffers", "0", "8k")}, []string{`"0 8k"; allowed: NUMBER SIZE`}},
		"keepalive":           {one("keepalive_timeout", "x"), []string{"allowed: a time such as 75s"}},
		"ssl protocols":       {one("proxy_ssl_protocols", "SSLv3"), []string{`"SSLv3"; allowed: TLSv1`}},
		"ssl ciphers":         {one("proxy_ssl_ciphers", "RC4"), []string{`"RC4" leaves no cipher`}},
		"ssl verify alone":    {in(node(3, "proxy_pass", "https://u"), node(4, "proxy_ssl_verify", "on")), []string{"proxy_ssl_verify on needs proxy_ssl_trusted_certificate"}},
		"ssl certificate":     {in(node(3, "proxy_pass", "https://u"), node(4, "proxy_ssl_certificate", "/nowhere/x"), node(5, "proxy_ssl_certificate_key", "/nowhere/y")), []string{"certificate: open /nowhere/x"}},
		"ssl key alone":       {in(node(3, "proxy_pass", "https://u"), node(4, "proxy_ssl_certificate", "/nowhere/x")), []string{"no proxy_ssl_certificate_key is said"}},
		"a duplicate":         {in(node(3, "proxy_pass", "http://u"), node(4, "proxy_pass", "http://u")), []string{"f:4: proxy_pass: is duplicate"}},
		"several at once":     {in(node(3, "proxy_http_version", "3"), node(4, "gzip", "yes"), node(5, "charset")), []string{"f:3: proxy_http_version", "f:4: gzip", "f:5: charset: has 0 arguments"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := Compile(tc.nodes, Options{Upstreams: func(name string) bool { return name == "u" }})
			var all []string
			for _, f := range faults {
				all = append(all, f.Error())
			}
			text := strings.Join(all, "\n")
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if len(faults) != len(tc.want) {
				t.Errorf("%d faults, want %d:\n%s", len(faults), len(tc.want), text)
			}
		})
	}
}
