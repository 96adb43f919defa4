package site

import "testing"

func TestRewrite(t *testing.T) {
	run(t, []table{
		{"last, break, none", `server { listen 127.0.0.1:8080;
			location /a/ { rewrite ^/a/(.*)$ /b/$1 last; return 500; }
			location /b/ { return 200 "b $uri $args $request_uri"; }
			location /c/ { rewrite ^/c/(.*)$ /b/$1 break; return 500; }
			location /d/ { rewrite ^/d/(.*)$ /b/$1; rewrite ^/b/(.*)$ /b/$1/again; set $x 1; }
			location /e/ { rewrite ^/e/(.*)$ /b/$1; break; return 500; }
			location /f/ { rewrite ^/f/(.*)$ /b/$1; return 200 "f $uri"; }
			location /loop { rewrite ^ /loop last; }
			rewrite ^/s/(.*)$ /b/$1;
			rewrite ^/t/(.*)$ /a/$1 break;
			rewrite ^/b/final$ /never;
		}`, []row{
			{ask: "GET /a/x?q=1", want: "200 | b /b/x q=1 /a/x?q=1"},
			{ask: "GET /c/x", want: "404 | <page>"},
			{ask: "GET /d/x", want: "200 | b /b/x/again  /d/x"},
			{ask: "GET /e/x", want: "404 | <page>"},
			{ask: "GET /f/x", want: "200 | f /b/x"},
			{ask: "GET /loop", want: "500 | <page>"},
			{ask: "GET /s/x", want: "200 | b /b/x  /s/x"},
			{ask: "GET /s/final", want: "404 | <page>"},
			{ask: "GET /t/x", want: "200 | b /b/x  /t/x"},
		}},
		{"arguments", `server { listen 127.0.0.1:8080;
			location /o { return 200 "$uri|$args|$is_args|$query_string"; }
			location /a { rewrite ^/a(.*)$ /o$1; }
			location /b { rewrite ^/b(.*)$ /o$1?x=$1; }
			location /c { rewrite ^/c(.*)$ /o$1?x=$1?; }
			location /d { rewrite ^/d(.*)$ /o?; }
			location /e { rewrite ^/e(.*)$ /o?$args; }
			location /f { set $args "k=v"; rewrite ^ /o; }
			location /g { rewrite ^/g(.*)$ "/o?a=$1&b=?"; }
			location /h { rewrite ^/h /o?x=$arg_y; }
		}`, []row{
			{ask: "GET /a1", want: "200 | /o1|||"}, {ask: "GET /a1?p", want: "200 | /o1|p|?|p"}, {ask: "GET /a1?", want: "200 | /o1|||"},
			{ask: "GET /b1?p=2", want: "200 | /o1|x=1&p=2|?|x=1&p=2"}, {ask: "GET /c1?p=2", want: "200 | /o1|x=1|?|x=1"},
			{ask: "GET /d1?p=2", want: "200 | /o|||"}, {ask: "GET /e1?p=2", want: "200 | /o|p=2&p=2|?|p=2&p=2"}, {ask: "GET /f?p=2", want: "200 | /o|k=v|?|k=v"},
			{ask: "GET /g1?p=2", want: "200 | /o|a=1&b=|?|a=1&b="}, {ask: "GET /h?y=a%20b", want: "200 | /o|x=a%20b&y=a%20b|?|x=a%20b&y=a%20b"},
			{ask: "GET /b%20%26%2B+x?p", want: "200 | /o &++x|x=%20%26%2B%2Bx&p|?|x=%20%26%2B%2Bx&p"},
			{ask: "GET /a1?p#frag", want: "200 | /o1|p|?|p"}, {ask: "GET /a1#frag?x", want: "200 | /o1|||"},
		}},
		{"redirects", `server { listen 127.0.0.1:8080;
			location /a { rewrite ^/a(.*)$ /o$1 redirect; }
			location /b { rewrite ^/b(.*)$ http://other.example$1?x=$1 permanent; }
			location /c { rewrite ^/c(.*)$ https://$host/o$1?; }
			location /d { rewrite ^/d(.*)$ $scheme://o/$1; return 500; }
			location /e { rewrite ^/e(.*)$ /o$1?u=$uri permanent; }
		}`, []row{
			{ask: "GET /a1?q", want: "302 http://test.example:8080/o1?q | <page>"},
			{ask: "GET /a%20b", want: "302 http://test.example:8080/o%20b | <page>"},
			{ask: "GET /a%41%26%2B%3F%23%25%22%3Cx", want: "302 http://test.example:8080/oA&+?%23%25%22%3Cx | <page>"},
			{ask: "GET /a/%E2%82%AC", want: "302 http://test.example:8080/o/%E2%82%AC | <page>"},
			{ask: "GET /b/1%20%41?q=2", want: "301 http://other.example/1%20A?x=/1%20A&q=2 | <page>"},
			{ask: "GET /c1?q", want: "302 https://test.example/o1 | <page>"},
			{ask: "GET /d1", want: "302 http://o/1 | <page>"},
			{ask: "GET /e%20b", want: "301 http://test.example:8080/o%20b?u=/e b | <page>"},
		}},
		{"captures: of the last match, none after a failed rewrite or if", `server { listen 127.0.0.1:8080;
			location ~ ^/a/(.)(.)? { set $x $1; rewrite ^/zzz(.*) /never; return 200 "$x $1 $2"; }
			location ~ ^/b/(.)(.)? { if ($arg_q ~ "^(.)(.)(.)") { set $y "$3$2$1"; } return 200 "$y $1"; }
			location ~ ^/c/(.)(.)? { if ($arg_q !~ "^(.)") { set $y no; } return 200 "$y $1"; }
			location ~ ^/d/(.) { if ($arg_q ~ z) { set $y yes; } return 200 "$y $1"; }
			location ~ ^/e/(?<first>.)(?<rest>.*)$ { if ($rest ~ "^(?<first>.)q") { set $y 1; } return 200 "$first $rest $y"; }
			location ~ ^/f/(.*)$ { set $x $1; return 200 "$x $1"; }
			location ~ ^/g/(.*)$ { rewrite ^/g/(.).* /h/$1; set $x $1; return 200 "$x|"; }
		}`, []row{
			{ask: "GET /a/xy", want: "200 | x  "}, {ask: "GET /b/xy?q=abc", want: "200 | cba a"}, {ask: "GET /b/xy?q=ab", want: "200 |  "},
			{ask: "GET /c/xy?q=abc", want: "200 |  a"}, {ask: "GET /c/xy", want: "200 | no "},
			{ask: "GET /d/x?q=z", want: "200 | yes "}, {ask: "GET /d/x?q=y", want: "200 |  "},
			{ask: "GET /e/abqc", want: "200 | b bqc 1"}, {ask: "GET /e/abc", want: "200 | a bc "},
			{ask: "GET /f/a%20b", want: "200 | a%20b a b"}, {ask: "GET /f/a+b", want: "200 | a%2Bb a+b"}, {ask: "GET /f/ab", want: "200 | ab ab"},
			{ask: "GET /g/%20b", want: "200 |  |"},
		}},
		{"return", `server { listen 127.0.0.1:8080;
			location /200 { return 200; } location /text { return 200 "a $arg_x b"; } location /204 { return 204; } location /404t { return 404 "gone: $uri"; }
			location /404 { return 404; } location /404e { return 404 ""; } location /444 { return 444; } location /450 { return 450; } location /503 { return 503; }
			location /url { return http://o/; } location /304 { return 304; } location /201 { return 201; } location /201t { return 201 t; } location /226 { return 226; }
			location /306 { return 306 x; } location /300 { return 300 x; } location /511 { return 511; } location /499 { return 499; } location /494 { return 494; } location /407 { return 407; }
			return 203 server;
		}`, []row{{ask: "GET /x", want: "203 | server"}, {ask: "GET /200", want: "203 | server"}}},
		{"return in locations", `server { listen 127.0.0.1:8080;
			location /200 { return 200; } location /text { return 200 "a $arg_x b"; } location /204 { return 204; } location /404t { return 404 "gone: $uri"; }
			location /404 { return 404; } location /404e { return 404 ""; } location /444 { return 444; } location /450 { return 450; } location /503 { return 503; }
			location /url { return http://o/; } location /304 { return 304; } location /201 { return 201; } location /201t { return 201 t; } location /226 { return 226; }
			location /306 { return 306 x; } location /300 { return 300 x; } location /511 { return 511; } location /494 { return 494; } location /407 { return 407; }
		}`, []row{
			{ask: "GET /200", want: "200"}, {ask: "GET /text?x=1", want: "200 | a 1 b"}, {ask: "GET /204", want: "204"}, {ask: "GET /404t", want: "404 | gone: /404t"},
			{ask: "GET /404", want: "404 | <page>"}, {ask: "GET /404e", want: "404 | <page>"}, {ask: "GET /444", want: "closed"}, {ask: "GET /450", want: "450"}, {ask: "GET /503", want: "503 | <page>"},
			{ask: "GET /url", want: "302 http://o/ | <page>"}, {ask: "GET /304", want: "304"}, {ask: "GET /201", want: "201"}, {ask: "GET /201t", want: "201 | t"}, {ask: "GET /226", want: "226"},
			{ask: "GET /306", want: "306 | x"}, {ask: "GET /300", want: "300 | x"}, {ask: "GET /511", want: "511"}, {ask: "GET /494", want: "400 | <page>"}, {ask: "GET /407", want: "407"},
			{ask: "HEAD /text", want: "200"}, {ask: "POST /text?x=1", want: "200 | a 1 b"}, {ask: "HEAD /404", want: "404"},
		}},
	})
}

func TestIf(t *testing.T) {
	run(t, []table{
		{"operators", `server { listen 127.0.0.1:8080;
			location / {
				set $r "";
				if ($arg_a) { set $r "${r}bare "; }
				if ($arg_a = "x y") { set $r "${r}never "; }
				if ($arg_a = x$arg_b) { set $r "${r}eq "; }
				if ($arg_a != x) { set $r "${r}ne "; }
				if ($arg_a ~ ^X) { set $r "${r}re "; }
				if ($arg_a ~* ^X) { set $r "${r}fold "; }
				if ($arg_a !~ ^X) { set $r "${r}nore "; }
				if ($arg_a !~* ^X) { set $r "${r}nofold "; }
				if ($request_method = POST) { return 405; }
				return 200 $r;
			} }`, []row{
			{ask: "GET /", want: "200 | ne nore nofold "}, {ask: "GET /?a=0", want: "200 | ne nore nofold "}, {ask: "GET /?a=00", want: "200 | bare ne nore nofold "},
			{ask: "GET /?a=x", want: "200 | bare eq fold nore "}, {ask: "GET /?a=X", want: "200 | bare ne re fold "}, {ask: "GET /?a=xy&b=y", want: "200 | bare eq ne fold nore "},
			{ask: "POST /", want: "405 | <page>"}, {ask: "GET /?A=x", want: "200 | bare eq fold nore "},
		}},
		{"settings of the last if that holds apply to the content, and what follows it still runs", `server { listen 127.0.0.1:8080;
			error_page 404 =410 /e;
			location = /e { return 200 "server"; }
			location = /e1 { return 200 "one"; }
			location = /e2 { return 200 "two"; }
			location / {
				if ($arg_a) { error_page 404 =411 /e1; }
				if ($arg_b) { error_page 404 =412 /e2; }
				if ($arg_c) { set $x 1; }
				if ($arg_d) { rewrite ^ /moved; }
				if ($arg_f) { break; }
				if ($arg_g) { return 200 "g"; }
			}
		}`, []row{
			{ask: "GET /", want: "410 | server"}, {ask: "GET /?a=1", want: "411 | one"}, {ask: "GET /?a=1&b=1", want: "412 | two"}, {ask: "GET /?a=1&c=1", want: "410 | server"},
			{ask: "GET /?a=1&f=1&g=1", want: "410 | server"}, {ask: "GET /?g=1", want: "200 | g"}, {ask: "GET /?d=1&a=1", want: "500 | <page>"},
		}},
		{"in server: its settings are none", `server { listen 127.0.0.1:8080; set $v $host;
			if ($host = a.example) { return 301 http://b.example$request_uri; }
			if ($http_x_v) { set $v $http_x_v; }
			location / { return 200 $v; } }`, []row{
			{ask: "GET /p?q a.example", want: "301 http://b.example/p?q | <page>"}, {ask: "GET / c.example", want: "200 | c.example"}, {ask: "GET /", want: "200 | vv", fields: []string{"X-V: vv"}},
		}},
		{"set variables and maps live on over internal redirects", `map $uri $m { /a first; default other; }
			map $uri $n { volatile; /a first; default other; }
			server { listen 127.0.0.1:8080;
			location /a { set $x "$x+a"; set $y $m$n; rewrite ^ /b last; }
			location /b { set $x "$x+b"; return 200 "$x $y $m $n"; }
			location /c { return 200 "[$x] $m"; }
		}`, []row{{ask: "GET /a", want: "200 | +a+b firstfirst first other"}, {ask: "GET /c", want: "200 | [] other"}}},
	})
}
