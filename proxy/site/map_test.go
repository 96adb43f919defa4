package site

import "testing"

func TestMaps(t *testing.T) {
	run(t, []table{
		{"keys, values, case", `
			map $arg_k $m { "" empty; a one; B two; ~^re(.)$ "re $1"; ~*^fold fold; "~^(?<nam>n.*)$" "named $nam"; \default word; default "def $arg_v"; }
			map $arg_k $none { a 1; }
			map "$arg_k-$arg_v" $two { a-b both; default $m; }
			map $host $h { hostnames; .x.example x; *.y.example y; www.* w; z.example $arg_k; default d; }
			server { listen 127.0.0.1:8080; location / { return 200 "$m|$none|$two|$h|$1"; } }`, []row{
			{ask: "GET /", want: "200 | empty||empty|d|"}, {ask: "GET /?k=A&v=b", want: "200 | one|1|both|d|"}, {ask: "GET /?k=b", want: "200 | two||two|d|"},
			{ask: "GET /?k=reX", want: "200 | re X||re X|d|X"}, {ask: "GET /?k=REX", want: "200 | def ||def |d|"}, {ask: "GET /?k=FOLDED", want: "200 | fold||fold|d|"},
			{ask: "GET /?k=nnn", want: "200 | named nnn||named nnn|d|nnn"}, {ask: "GET /?k=default&v=1", want: "200 | word||word|d|"}, {ask: "GET /?k=q&v=1", want: "200 | def 1||def 1|d|"},
			{ask: "GET / x.example", want: "200 | empty||empty|x|"}, {ask: "GET / A.X.example", want: "200 | empty||empty|x|"}, {ask: "GET / y.example", want: "200 | empty||empty|d|"}, {ask: "GET / a.b.y.example", want: "200 | empty||empty|y|"},
			{ask: "GET / www.a.b", want: "200 | empty||empty|w|"}, {ask: "GET /?k=Z z.example.", want: "200 | def ||def |Z|"},
		}},
		{"the web-socket map", `map $http_upgrade $connection_upgrade { default upgrade; '' close; }
			server { listen 127.0.0.1:8080; location / { return 200 $connection_upgrade; } }`, []row{
			{ask: "GET /", want: "200 | close"}, {ask: "GET /", want: "200 | upgrade", fields: []string{"Upgrade: websocket"}},
		}},
		{"two maps of each other end", `map $a $b { default $a; } map $b $a { default $b; }
			server { listen 127.0.0.1:8080; location / { return 200 ok; } }`, []row{{ask: "GET /", want: "200 | ok"}}},
	})
}
