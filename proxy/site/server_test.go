package site

import "testing"

func TestServers(t *testing.T) {
	run(t, []table{
		{"by name", `
			server { listen 127.0.0.1:8080; server_name first.example; location / { return 200 "first $server_name"; } }
			server { listen 127.0.0.1:8080; server_name *.wild.example; location / { return 200 "head $server_name"; } }
			server { listen 127.0.0.1:8080; server_name *.b.wild.example; location / { return 200 "longer head"; } }
			server { listen 127.0.0.1:8080; server_name www.tail.*; location / { return 200 "tail"; } }
			server { listen 127.0.0.1:8080; server_name www.tail.co.*; location / { return 200 "longer tail"; } }
			server { listen 127.0.0.1:8080; server_name .both.example; location / { return 200 "both $server_name"; } }
			server { listen 127.0.0.1:8080; server_name ~^(www\.)?(?<domain>.+)\.re$; location / { return 200 "re $domain $2 $server_name"; } }
			server { listen 127.0.0.1:8080; server_name "~^x\.[a-z]{2}$" exact.re; location / { return 200 "re2 $server_name"; } }
			server { listen 127.0.0.1:8080; location / { return 200 "no name, $host"; } }
		`, []row{
			{ask: "GET / First.Example", want: "200 | first first.example"}, {ask: "GET / other", want: "200 | first first.example"}, {ask: "GET / first.example.:81", want: "200 | first first.example"},
			{ask: "GET / a.wild.example", want: "200 | head *.wild.example"}, {ask: "GET / wild.example", want: "200 | first first.example"}, {ask: "GET / a.b.wild.example", want: "200 | longer head"},
			{ask: "GET / b.wild.example", want: "200 | head *.wild.example"}, {ask: "GET / www.tail.org", want: "200 | tail"}, {ask: "GET / www.tail.co.uk", want: "200 | longer tail"}, {ask: "GET / www.tail", want: "200 | first first.example"},
			{ask: "GET / both.example", want: "200 | both both.example"}, {ask: "GET / a.both.example", want: "200 | both both.example"}, {ask: "GET / xboth.example", want: "200 | first first.example"},
			{ask: "GET / www.shop.re", want: `200 | re shop shop ~^(www\.)?(?<domain>.+)\.re$`}, {ask: "GET / exact.re", want: `200 | re2 ~^x\.[a-z]{2}$`}, {ask: "GET / x.ab", want: `200 | re2 ~^x\.[a-z]{2}$`},
			{ask: "GET / ", want: "200 | no name, "}, {ask: "GET / a..b", want: "400 | <page>"},
		}},
		{"default_server, _ and an empty name", `
			server { listen 127.0.0.1:8080; server_name a; location / { return 200 a; } }
			server { listen 127.0.0.1:8080 default_server; server_name _; location / { return 200 "default $server_name $host"; } }
			server { listen 127.0.0.1:8080; server_name "" b; location / { return 200 "[$server_name] $host"; } }
		`, []row{{ask: "GET / x", want: "200 | default _ x"}, {ask: "GET / a", want: "200 | a"}, {ask: "GET / b", want: "200 | [] b"}, {ask: "GET / ", want: "200 | [] "}, {ask: "GET / _", want: "200 | default _ _"}}},
		{"a name that stands twice is the first one's; errors before the server is known are the default one's", `
			server { listen 127.0.0.1:8080; server_name a; error_page 400 =200 /e; location /e { return 200 default; } location / { return 200 one; } }
			server { listen 127.0.0.1:8080; server_name a b; location / { return 200 two; } }
		`, []row{{ask: "GET / a", want: "200 | one"}, {ask: "GET / b", want: "200 | two"}, {ask: "GET /%zz b", want: "200 | default"}}},
	})
}
