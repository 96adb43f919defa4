package site

import "testing"

// each is a location that says its name.
func TestLocations(t *testing.T) {
	run(t, []table{
		{"exact, stem, prefix, regex", `server { listen 127.0.0.1:8080;
			location = / { return 200 "= /"; }
			location / { return 200 "/"; }
			location /documents/ { return 200 "/documents/"; }
			location ^~ /images/ { return 200 "^~ /images/"; }
			location ~* \.(gif|jpg|jpeg)$ { return 200 "regex $1"; }
			location ~ \.GIF$ { return 200 "never"; }
		}`, []row{
			{ask: "GET /", want: "200 | = /"},
			{ask: "GET /?a", want: "200 | = /"},
			{ask: "GET /index.html", want: "200 | /"},
			{ask: "GET /documents/document.html", want: "200 | /documents/"},
			{ask: "GET /documents", want: "200 | /"},
			{ask: "GET /images/1.gif", want: "200 | ^~ /images/"},
			{ask: "GET /documents/1.jpg", want: "200 | regex jpg"},
			{ask: "GET /1.GIF", want: "200 | regex GIF"},
			{ask: "GET /%31.gi%66", want: "200 | regex gif"},
			{ask: "GET //images///1.gif", want: "200 | ^~ /images/"},
			{ask: "GET /x/../images/./1.gif", want: "200 | ^~ /images/"},
			{ask: "GET /%2e%2e/a", want: "400 | <page>"},
			{ask: "GET /../a", want: "400 | <page>"},
			{ask: "GET /a%00b", want: "400 | <page>"},
			{ask: "GET /a%zzb", want: "400 | <page>"},
			{ask: "GET /documents%2Fx", want: "200 | /documents/"},
		}},
		{"regexes in their order", `server { listen 127.0.0.1:8080;
			location ~ ^/a { return 200 first; }
			location ~ ^/ab { return 200 second; }
			location /ab { return 200 prefix; }
		}`, []row{{ask: "GET /abc", want: "200 | first"}, {ask: "GET /ab", want: "200 | first"}, {ask: "GET /b", want: "404 | <page>"}}},
		{"exact and prefix of one name", `server { listen 127.0.0.1:8080;
			location = /a { return 200 exact; }
			location /a { return 200 prefix; }
			location = /ab { return 200 exactab; }
			location ~ . { return 200 regex; }
		}`, []row{{ask: "GET /a", want: "200 | exact"}, {ask: "GET /ab", want: "200 | exactab"}, {ask: "GET /abc", want: "200 | regex"}}},
		{"nested: inner regexes come before outer ones, and an inner ^~ stops only inner ones", `server { listen 127.0.0.1:8080;
			location /a/ { return 200 a;
				location /a/b { return 200 ab; }
				location ^~ /a/s { return 200 stem; location ~ s9 { return 200 s9; } }
				location ~ x$ { return 200 innerx; location ~ yx$ { return 200 yx; } }
			}
			location ^~ /c/ { return 200 c; location ~ \.x$ { return 200 cx; } }
			location ~ [xz]$ { return 200 outerxz; }
		}`, []row{
			{ask: "GET /a/", want: "200 | a"}, {ask: "GET /a/b1", want: "200 | ab"}, {ask: "GET /a/b1x", want: "200 | innerx"},
			{ask: "GET /a/b1yx", want: "200 | yx"}, {ask: "GET /a/b1z", want: "200 | outerxz"}, {ask: "GET /a/s", want: "200 | stem"},
			{ask: "GET /a/sx", want: "200 | outerxz"}, {ask: "GET /a/s9x", want: "200 | s9"}, {ask: "GET /c/z", want: "200 | c"}, {ask: "GET /c/a.x", want: "200 | cx"},
		}},
		{"no location", `server { listen 127.0.0.1:8080; location /x/ { return 204; } }`, []row{
			{ask: "GET /", want: "404 | <page>"}, {ask: "POST /y", want: "404 | <page>"}, {ask: "PUT /y", want: "405 | <page>"}, {ask: "DELETE /", want: "405 | <page>"},
			{ask: "GET /x/", want: "204"}, {ask: "TRACE /x/", want: "405 | <page>"},
		}},
		{"merge_slashes off", `server { listen 127.0.0.1:8080; merge_slashes off;
			location /a/b { return 200 one; } location /a//b { return 200 two; } location / { return 200 $uri; } }`, []row{
			{ask: "GET /a/b", want: "200 | one"}, {ask: "GET /a//b", want: "200 | two"}, {ask: "GET //x///y//", want: "200 | //x///y//"}, {ask: "GET /x//../y", want: "200 | /x/y"},
			{ask: "GET /x/.//y", want: "200 | /x//y"}, {ask: "GET //../y", want: "200 | /y"},
		}},
		{"internal, which nested locations inherit", `server { listen 127.0.0.1:8080;
			location /i/ { internal; return 200 in; }
			location /r/ { rewrite ^/r/(.*) /i/$1 last; }
			location /n/ { internal; return 200 n; location /n/m { return 200 m; } }
			error_page 404 /i/404;
		}`, []row{
			{ask: "GET /i/x", want: "404 | in"}, {ask: "GET /r/x", want: "200 | in"}, {ask: "GET /n/x", want: "404 | in"}, {ask: "GET /n/m", want: "404 | in"},
		}},
		{"matching is by bytes", `server { listen 127.0.0.1:8080;
			location ~ ^/.$ { return 200 one; } location ~ ^/(..)$ { return 200 "two $1"; } location ~ "^/caf\xc3\xa9(.*)$" { return 200 "x$1"; }
			location ~ ^/(?<all>.*)$ { return 200 "$all"; } }`, []row{
			{ask: "GET /a", want: "200 | one"}, {ask: "GET /%C3%A9", want: "200 | two \xc3\xa9"}, {ask: "GET /%E2%82%AC", want: "200 | \xe2\x82\xac"}, {ask: "GET /%ff%fe", want: "200 | two \xff\xfe"},
		}},
		{"port in a redirect, the name as the client wrote it", `server { listen 127.0.0.1:8080;
			location /a { return 301 /b; }
			location /p { port_in_redirect off; return 302 /b; }
			location /r { absolute_redirect off; return 303 /b; }
			location /s { server_name_in_redirect on; return 307 /b; }
			location /o { return 308 https://other/x?y; }
			location /e { return 301; }
			location /v { return https://$host$request_uri; }
			server_name first.example second.example;
		}`, []row{
			{ask: "GET /a Second.Example", want: "301 http://second.example:8080/b | <page>"},
			{ask: "GET /a second.example.:99", want: "301 http://second.example:8080/b | <page>"},
			{ask: "GET /p", want: "302 http://test.example/b | <page>"},
			{ask: "GET /r", want: "303 /b | <page>"},
			{ask: "GET /s second.example", want: "307 http://first.example:8080/b | <page>"},
			{ask: "GET /o", want: "308 https://other/x?y | <page>"},
			{ask: "GET /e", want: "301 | <page>"},
			{ask: "GET /v?a=b", want: "302 https://test.example/v?a=b | <page>"},
			{ask: "HEAD /a", want: "301 http://test.example:8080/b"},
		}},
	})
}
