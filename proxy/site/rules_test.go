package site

import (
	"fmt"
	"strings"
	"testing"
)

func TestGeo(t *testing.T) {
	run(t, []table{
		{"networks of a text", `
			geo $arg_a $g { default d; 10.0.0.0/8 ten; 10.1.0.0/16 "ten one"; 10.1.2.3 one; 10.1.2.3 again; 192.0.2.9/24 loose; 2001:db8::/32 six;
				2001:db8:1::/48 $host; 10.9.0.0/16 gone; delete 10.9.0.0/16; delete 10.8.0.0/16; 255.255.255.255 all; }
			geo $arg_a $n { 10.0.0.0/8 ten; }
			geo $c { 127.0.0.0/8 local; default far; }
			geo $arg_a $b { 0.0.0.0/0 four; ::/0 six; }
			server { listen 127.0.0.1:8080; location / { return 200 "$g|$n|$c|$b"; } }`, []row{
			{ask: "GET /?a=10.5.5.5", want: "200 | ten|ten|local|four"}, {ask: "GET /?a=10.1.0.1", want: "200 | ten one|ten|local|four"},
			{ask: "GET /?a=10.1.2.3", want: "200 | again|ten|local|four"}, {ask: "GET /?a=192.0.2.200", want: "200 | loose||local|four"},
			{ask: "GET /?a=2001:db8:2::1", want: "200 | six||local|six"}, {ask: "GET /?a=2001:db8:1::1", want: "200 | $host||local|six"},
			{ask: "GET /?a=::ffff:10.1.0.1", want: "200 | ten one|ten|local|four"}, {ask: "GET /?a=10.9.0.1", want: "200 | ten|ten|local|four"},
			{ask: "GET /?a=9.9.9.9", want: "200 | d||local|four"}, {ask: "GET /?a=nonsense", want: "200 | all||local|four"}, {ask: "GET /", want: "200 | all||local|four"},
		}},
		{"ranges", `
			geo $arg_a $g { ranges; default d; 10.0.0.1-10.0.0.9 a; 10.0.0.3-10.0.0.4 b; 10.0.0.3-10.0.0.4 c; 10.1.0.0-10.3.0.5 wide; 10.2.0.1-10.2.0.2 in;
				172.16.0.0-172.16.0.9 x; delete 172.16.0.0-172.16.0.9; }
			geo $arg_a $n { ranges; 10.0.0.1-10.0.0.9 a; }
			server { listen 127.0.0.1:8080; location / { return 200 "$g|$n"; } }`, []row{
			{ask: "GET /?a=10.0.0.0", want: "200 | d|"}, {ask: "GET /?a=10.0.0.1", want: "200 | a|a"}, {ask: "GET /?a=10.0.0.3", want: "200 | c|a"}, {ask: "GET /?a=10.0.0.4", want: "200 | c|a"},
			{ask: "GET /?a=10.0.0.5", want: "200 | a|a"}, {ask: "GET /?a=10.0.0.9", want: "200 | a|a"}, {ask: "GET /?a=10.0.0.10", want: "200 | d|"},
			{ask: "GET /?a=10.1.0.0", want: "200 | wide|"}, {ask: "GET /?a=10.2.0.2", want: "200 | in|"}, {ask: "GET /?a=10.2.0.3", want: "200 | wide|"}, {ask: "GET /?a=10.3.0.5", want: "200 | wide|"}, {ask: "GET /?a=10.3.0.6", want: "200 | d|"},
			{ask: "GET /?a=172.16.0.5", want: "200 | d|"}, {ask: "GET /?a=::1", want: "200 | d|"}, {ask: "GET /?a=::ffff:10.0.0.4", want: "200 | c|a"}, {ask: "GET /?a=x", want: "200 | d|"},
		}},
		{"proxies", `
			geo $one { default d; proxy 127.0.0.0/8; proxy 10.0.0.0/8; 192.0.2.0/24 client; 10.0.0.0/8 ten; 127.0.0.1 local; }
			geo $all { default d; proxy 127.0.0.0/8; proxy 10.0.0.0/8; proxy_recursive; 192.0.2.0/24 client; 10.0.0.0/8 ten; 127.0.0.1 local; }
			geo $arg_a $of { default d; proxy 10.0.0.0/8; 192.0.2.0/24 client; 10.0.0.0/8 ten; }
			geo $plain { default d; 127.0.0.1 local; }
			server { listen 127.0.0.1:8080; location / { return 200 "$one|$all|$of|$plain"; } }`, []row{
			{ask: "GET /", want: "200 | local|local|d|local"},
			{ask: "GET /?a=10.1.1.1", want: "200 | client|client|client|local", fields: []string{"X-Forwarded-For: 192.0.2.5"}},
			{ask: "GET /?a=11.1.1.1", want: "200 | ten|client|d|local", fields: []string{"X-Forwarded-For: 192.0.2.5, 10.3.3.3"}},
			{ask: "GET /", want: "200 | d|d|d|local", fields: []string{"X-Forwarded-For: 192.0.2.5, 11.3.3.3"}},
			{ask: "GET /", want: "200 | local|local|d|local", fields: []string{"X-Forwarded-For: nonsense"}},
			{ask: "GET /", want: "200 | ten|ten|d|local", fields: []string{"X-Forwarded-For: nonsense, 10.3.3.3"}},
		}},
		{"after real_ip, and kept for the request", `
			geo $g { default far; 192.0.2.0/24 near; }
			geo $arg_a $k { default far; 192.0.2.0/24 near; }
			server { listen 127.0.0.1:8080; set_real_ip_from 127.0.0.0/8; set $first $k; set $args a=192.0.2.1;
			location / { return 200 "$g $first $k"; } }`, []row{
			{ask: "GET /", want: "200 | far far far"}, {ask: "GET /", want: "200 | near far far", fields: []string{"X-Real-IP: 192.0.2.5"}},
		}},
	})
}

func TestSplitClients(t *testing.T) {
	hundred := &strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(hundred, "1%% %d; ", i)
	}
	run(t, []table{
		{"in hundredths", `
			split_clients "$arg_k" $h { ` + hundred.String() + ` }
			split_clients "$arg_k-x" $v { 0.5% .one; 33.33% two; 10% three; * ""; }
			split_clients "${arg_k}AAA" $w { .5% a; 50.% b; }
			split_clients $arg_k $all { 100% x; }
			split_clients $arg_k $rest { * $host; }
			split_clients $arg_k $none { }
			server { listen 127.0.0.1:8080; location / { return 200 "$h|$v|$w|$all|$rest|$none"; } }`, splitRows},
		{"kept for the request", `split_clients $arg_k $v { 50% a; * b; }
			server { listen 127.0.0.1:8080; set $first $v; set $args k=abcdefg; location / { return 200 "$first $v"; } }`, []row{{ask: "GET /", want: "200 | a a"}, {ask: "GET /?k=abcdefg", want: "200 | b b"}}},
	})
}

// splitRows are what nginx 1.22 gave.
var splitRows = []row{
	{ask: "GET /?k=", want: "200 | 0|||x|$host|"},
	{ask: "GET /?k=a", want: "200 | 57||b|x|$host|"},
	{ask: "GET /?k=ab", want: "200 | 10|two||x|$host|"},
	{ask: "GET /?k=abc", want: "200 | 7|two|b|x|$host|"},
	{ask: "GET /?k=abcd", want: "200 | 15|two||x|$host|"},
	{ask: "GET /?k=abcde", want: "200 | 37|two|b|x|$host|"},
	{ask: "GET /?k=127.0.0.1", want: "200 | 71|two||x|$host|"},
	{ask: "GET /?k=10.0.0.1", want: "200 | 62||b|x|$host|"},
	{ask: "GET /?k=192.0.2.1", want: "200 | 78|two||x|$host|"},
	{ask: "GET /?k=hello", want: "200 | 89||b|x|$host|"},
	{ask: "GET /?k=session-4711", want: "200 | 13|||x|$host|"},
	{ask: "GET /?k=0123456789abcdef", want: "200 | 81|three|b|x|$host|"},
	{ask: "GET /?k=x", want: "200 | 8||b|x|$host|"},
	{ask: "GET /?k=user1", want: "200 | 5|three||x|$host|"},
	{ask: "GET /?k=user2", want: "200 | 26|two||x|$host|"},
	{ask: "GET /?k=user3", want: "200 | 84|||x|$host|"},
	{ask: "GET /?k=%C3%BC", want: "200 | 3|||x|$host|"},
}

func TestLimitExcept(t *testing.T) {
	run(t, []table{
		{"who may", `
			server { listen 127.0.0.1:8080;
			location /get { limit_except GET { deny all; } return 200 "got $request_method"; }
			location /post { limit_except POST put { allow 127.0.0.1; deny all; } proxy_pass http://u; }
			location /denied { limit_except POST { deny 127.0.0.1; allow all; } proxy_pass http://u/x; }
			location /inherit { deny all; limit_except POST { } proxy_pass http://u; }
			location /over { deny all; limit_except POST { allow all; } proxy_pass http://u/over/; }
			location /own { limit_except GET { proxy_pass http://u; } return 200 local; }
			location /swap { limit_except GET { proxy_pass http://u; } proxy_pass http://u/swapped; }
			location /rewritten { rewrite ^ /else break; limit_except GET { allow all; } proxy_pass http://u; }
			location /tried { try_files /none @named; limit_except GET { allow all; } }
			location @named { limit_except GET { deny all; } return 200 named; }
			location /page { limit_except GET { deny all; } error_page 403 = @page; return 200 ok; }
			location @page { return 200 "page $request_method"; }
			location /nested { limit_except GET { deny all; } return 200 outer; location /nested/in { return 200 inner; } }
			location ~ ^/regex/(.*) { limit_except GET { proxy_pass http://u; } return 200 $1; }
			location /moved { rewrite ^ /get last; limit_except POST { deny all; } }
			location /iffy { if ($arg_x) { set $y 1; } limit_except POST { deny all; } proxy_pass http://u; }
			}`, []row{
			{ask: "GET /get", want: "200 | got GET"}, {ask: "HEAD /get", want: "200"}, {ask: "POST /get", want: "403 | <page>"}, {ask: "DELETE /get", want: "403 | <page>"}, {ask: "FOO /get", want: "403 | <page>"},
			{ask: "GET /post", want: "200 | GET /post"}, {ask: "POST /post", want: "200 | POST /post"}, {ask: "PUT /post", want: "200 | PUT /post"},
			{ask: "GET /denied", want: "403 | <page>"}, {ask: "POST /denied/y", want: "200 | POST /x/y"},
			{ask: "GET /inherit", want: "403 | <page>"}, {ask: "POST /inherit", want: "403 | <page>"},
			{ask: "GET /over/a", want: "200 | GET /over//a"}, {ask: "POST /over", want: "403 | <page>"},
			{ask: "GET /own", want: "200 | local"}, {ask: "PATCH /own/a?b=c", want: "200 | PATCH /own/a?b=c"},
			{ask: "GET /swap", want: "200 | GET /swapped"}, {ask: "PUT /swap", want: "200 | PUT /swap"},
			{ask: "GET /rewritten", want: "200 | GET /else"}, {ask: "PUT /rewritten", want: "200 | PUT /rewritten"},
			{ask: "GET /tried", want: "200 | named"}, {ask: "POST /tried", want: "404 | <page>"}, {ask: "PUT /tried", want: "405 | <page>"},
			{ask: "GET /page", want: "200 | ok"}, {ask: "POST /page", want: "200 | page POST"},
			{ask: "PUT /nested", want: "403 | <page>"}, {ask: "PUT /nested/in", want: "200 | inner"},
			{ask: "GET /regex/a", want: "200 | a"}, {ask: "PUT /regex/a", want: "200 | PUT /regex/a"},
			{ask: "GET /moved", want: "403 | <page>"}, {ask: "POST /moved", want: "403 | <page>"},
			{ask: "GET /iffy?x=1", want: "403 | <page>"}, {ask: "POST /iffy?x=1", want: "200 | POST /iffy?x=1"},
		}},
	})
}
