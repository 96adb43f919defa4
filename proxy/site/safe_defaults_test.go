package site

import "testing"

// TestALineFeedAtTheEnd: $ matches before it, so that it gets nobody around a rule.
func TestALineFeedAtTheEnd(t *testing.T) {
	run(t, []table{
		{"locations", `
			server { listen 127.0.0.1:8080;
				location ~ \.php$ { deny all; }
				location ~* \.BAK$ { deny all; }
				location ~ ^/c(.*)$ { return 200 "[$1]"; }
				location ~ ^/i(a$)(\s?) { return 200 "[$1][$2]"; }
				location ~ ^/s(\s*)$ { return 200 "[$1]"; }
				location ~ ^/n[^\n]*$ { return 200 "no feed"; }
				location ~ ^/f(a$\n)$ { return 200 "feed [$1]"; }
				location ~ ^/q(x|y$)*z?$ { return 200 "q[$1]"; }
				location ~ ^/e\$$ { return 200 "dollar"; }
				location ~ ^/b[$]$ { return 200 "class"; }
				location ~ ^/l\Qa$\E$ { return 200 "quoted"; }
				location ~ ^/z\.z\z { return 200 "z"; }
				location ~ "^/(?s:d.*)$" { return 200 "[$1]dots"; }
				location ~ "(?m)^/m.$" { return 200 "lines"; }
				location ~ "^/é.$" { return 200 "bytes"; }
				location / { return 200 else; } }`, []row{
			{ask: "GET /x.php", want: "403 | <page>"}, {ask: "GET /x.php%0a", want: "403 | <page>"}, {ask: "GET /x.php%0a%0a", want: "200 | else"}, {ask: "GET /x.php%0ax", want: "200 | else"},
			{ask: "GET /y%0ax.php%0a", want: "403 | <page>"}, {ask: "GET /x.php%0d%0a", want: "200 | else"}, {ask: "GET /x.php%0ab%0a", want: "200 | else"}, {ask: "GET /x.bak%0a", want: "403 | <page>"},
			{ask: "GET /cab%0a", want: "200 | [ab]"}, {ask: "GET /ca%0ab%0a", want: "200 | else"}, {ask: "GET /c%0a", want: "200 | []"},
			{ask: "GET /ia%0a", want: "200 | [a][\n]"}, {ask: "GET /ia", want: "200 | [a][]"}, {ask: "GET /s%0a", want: "200 | [\n]"}, {ask: "GET /s%0a%0a%0a", want: "200 | [\n\n\n]"},
			{ask: "GET /nx%0a", want: "200 | no feed"}, {ask: "GET /n%0ax%0a", want: "200 | else"}, {ask: "GET /fa%0a", want: "200 | feed [a\n]"}, {ask: "GET /fa%0a%0a", want: "200 | else"}, {ask: "GET /qxy%0a", want: "200 | q[y]"},
			{ask: "GET /qyx", want: "200 | else"}, {ask: "GET /e$", want: "200 | dollar"}, {ask: "GET /e$%0a", want: "200 | dollar"}, {ask: "GET /e%0a", want: "200 | else"}, {ask: "GET /b$%0a", want: "200 | class"},
			{ask: "GET /b%0a", want: "200 | else"}, {ask: "GET /la$%0a", want: "200 | quoted"}, {ask: "GET /la%0a", want: "200 | else"}, {ask: "GET /z.z", want: "200 | z"}, {ask: "GET /z.z%0a", want: "200 | else"},
			{ask: "GET /da%0ab%0a", want: "200 | []dots"}, {ask: "GET /ma%0ab", want: "200 | lines"}, {ask: "GET /%C3%A9x%0a", want: "200 | bytes"},
		}},
		{"elsewhere", `
			map $uri $m { default no; ~^/map(.)$ "yes"; }
			server { listen 127.0.0.1:8080;
				rewrite ^/rew(.*)$ /to last;
				location / { if ($uri ~ ^/if$) { return 201; } return 200 $m; }
				location = /to { return 202; } }`, []row{
			{ask: "GET /mapx%0a", want: "200 | yes"}, {ask: "GET /rewx%0a", want: "202"}, {ask: "GET /if%0a", want: "201"}, {ask: "GET /if%0a%0a", want: "200 | no"},
		}},
	})
}

// TestNothingMatchesNoPattern: what a map allows by a pattern, it does not allow without a value.
func TestNothingMatchesNoPattern(t *testing.T) {
	run(t, []table{{"maps", `
		map $arg_a $x { default deny; "~^[a-z]*$" allow; }
		map $arg_a $y { default deny; "~*^" allow; }
		map $arg_a $z { "" empty; "~^" allow; }
		map $arg_a $n { "~^" allow; }
		map $arg_a $dot { hostnames; default deny; "~^" allow; }
		split_clients $arg_a $s { 50% first; * rest; }
		geo $arg_a $g { default elsewhere; 0.0.0.0/8 zero; }
		server { listen 127.0.0.1:8080; location / { return 200 "$x|$y|$z|$n|$dot|$s|$g"; } }`, []row{
		{ask: "GET /", want: "200 | deny|deny|empty||deny|first|elsewhere"}, {ask: "GET /?a=", want: "200 | deny|deny|empty||deny|first|elsewhere"},
		{ask: "GET /?a=b", want: "200 | allow|allow|allow|allow|allow|rest|elsewhere"}, {ask: "GET /?a=.", want: "200 | deny|allow|allow|allow|deny|rest|elsewhere"},
	}}})
}

// TestThePortOfARealAddress is empty when the proxy in front did not say it.
func TestThePortOfARealAddress(t *testing.T) {
	run(t, []table{{"ports", `
		server { listen 127.0.0.1:8080; set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; set_real_ip_from 192.0.2.0/24; real_ip_header X-Real; location / { return 200 "[$remote_addr][$remote_port]"; } }`, []row{
		{ask: "GET /", want: "200 | [1.2.3.4][]", fields: []string{"X-Real: 1.2.3.4"}}, {ask: "GET /", want: "200 | [1.2.3.4][5]", fields: []string{"X-Real: 1.2.3.4:5"}},
	}}})
}
