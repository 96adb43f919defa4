package site

import "testing"

func TestErrorPage(t *testing.T) {
	run(t, []table{
		{"status of the page", `server { listen 127.0.0.1:8080;
			error_page 404 /e; error_page 410 =200 /e?a=b; error_page 411 = /e201; error_page 412 =301 /e; error_page 413 = /missing;
			error_page 402 403 =402 @n; error_page 409 @none; error_page 400 $arg_to; error_page 405 =503 /e;
			location /s { return 404; } location /g { return 410; } location /l { return 411; } location /p { return 412; } location /b { return 413; }
			location /f { return 403; } location /c { return 409; } location /v { return 400; } location /m { return 405; }
			location /e { return 200 "e $uri $args $request_method $status"; }
			location /e201 { return 201 "made"; }
			location @n { return 200 "n $uri $request_method"; }
		}`, []row{
			{ask: "GET /s?q", want: "404 | e /e  GET 404"}, {ask: "POST /s?q", want: "404 | e /e  GET 404"}, {ask: "GET /none", want: "404 | e /e  GET 404"}, {ask: "HEAD /s", want: "404"},
			{ask: "GET /g?q", want: "200 | e /e a=b GET 200"}, {ask: "GET /l", want: "201 | made"}, {ask: "GET /p", want: "301 | e /e  GET 301"}, {ask: "GET /b", want: "405 | <page>"},
			{ask: "POST /f", want: "402 | n /f POST"}, {ask: "GET /c", want: "500 | <page>"},
			{ask: "GET /v?to=/e?x", want: "400 | e /e x GET 400"}, {ask: "GET /v?to=http://o/", want: "302 http://o/ | <page>"}, {ask: "GET /v", want: "302 | <page>"},
			{ask: "PUT /x", want: "503 | e /e  GET 503"},
		}},
		{"to another host", `server { listen 127.0.0.1:8080;
			error_page 404 http://o/x; error_page 410 =301 http://o/$uri; error_page 411 =200 http://o/; error_page 412 =308 https://o/;
			location /s { return 404; } location /g { return 410; } location /l { return 411; } location /p { return 412; } }`, []row{
			{ask: "GET /s", want: "302 http://o/x | <page>"}, {ask: "GET /g", want: "301 http://o//g | <page>"}, {ask: "GET /l", want: "302 http://o/ | <page>"}, {ask: "GET /p", want: "308 https://o/ | <page>"},
		}},
		{"one error page leads to no other, unless they recur", `server { listen 127.0.0.1:8080;
			error_page 404 /a; error_page 403 =200 /b;
			location /a { return 403; }
			location /b { return 200 b; }
			location /r { recursive_error_pages on; error_page 404 /ra; return 404; }
			location /ra { return 403; }
			location /loop { recursive_error_pages on; error_page 404 /loop; return 404; }
		}`, []row{
			{ask: "GET /x", want: "403 | <page>"}, {ask: "GET /r", want: "200 | b"}, {ask: "GET /loop", want: "500 | <page>"},
		}},
		{"inherited whole or not at all", `error_page 404 =200 /h;
			server { listen 127.0.0.1:8080;
			location /h { return 200 h; } location /g { return 200 g; }
			location /a { return 404; }
			location /b { error_page 403 =200 /g; location /b/c { return 403; } return 404; }
		}`, []row{
			{ask: "GET /a", want: "200 | h"}, {ask: "GET /b", want: "404 | <page>"}, {ask: "GET /b/c", want: "200 | g"},
		}},
		{"redirects of our own are errors to error_page too", `server { listen 127.0.0.1:8080; error_page 301 =200 /e; error_page 302 = @n;
			location /e { return 200 "e"; } location @n { return 204; }
			location /a { return 301 /x; } location /b { rewrite ^ /x redirect; } }`, []row{
			{ask: "GET /a", want: "200 http://test.example:8080/x | e"}, {ask: "GET /b", want: "204 http://test.example:8080/x"},
		}},
		{"too large a body", `client_max_body_size 10; error_page 413 =200 /big;
			server { listen 127.0.0.1:8080; location / { return 200 ok; } location /big { return 200 "big $request_method"; } location /all { client_max_body_size 0; return 200 all; }
			location /in { client_max_body_size 1k; rewrite ^ / last; }
			location /up { error_page 413 = @up; } location @up { proxy_pass http://u; } }`, []row{
			{ask: "POST /", want: "200 | ok", fields: []string{"Content-Length: 10"}},
			{ask: "POST /", want: "200 | big GET", fields: []string{"Content-Length: 11"}},
			{ask: "POST /all", want: "200 | all", fields: []string{"Content-Length: 1100"}},
			{ask: "POST /up", want: "200 | POST /up", fields: []string{"Content-Length: 11"}},
			{ask: "POST /in", want: "200 | big GET", fields: []string{"Content-Length: 100"}},
		}},
		{"try_files with nothing to find", `server { listen 127.0.0.1:8080;
			location /a { try_files $uri $uri/ /b?u=$uri&$args; }
			location /b { return 200 "b $uri $args $request_method"; }
			location /c { try_files $uri =404; }
			location /d { try_files $uri @n; }
			location /e { try_files $uri @none; }
			location /f { if ($arg_x) { set $y 1; } try_files $uri @n; }
			location /g { error_page 404 @n; try_files $uri =404; location /g/h { } }
			location /i { try_files $uri /i; }
			location /j { rewrite ^/j /a$1 break; try_files $uri @n; }
			location @n { return 200 "n $uri"; }
		}`, []row{
			{ask: "GET /a?q=1", want: "200 | b /b u=/a&q=1 GET"}, {ask: "POST /a", want: "200 | b /b u=/a& POST"}, {ask: "GET /c", want: "404 | <page>"}, {ask: "GET /d", want: "200 | n /d"},
			{ask: "GET /e", want: "500 | <page>"}, {ask: "GET /f", want: "200 | n /f"}, {ask: "GET /f?x=1", want: "404 | <page>"}, {ask: "GET /g/x", want: "404 | n /g/x"}, {ask: "GET /g/h", want: "404 | n /g/h"},
			{ask: "GET /i", want: "500 | <page>"}, {ask: "GET /j", want: "200 | n /a"},
		}},
		{"a named location's rewrite finds a location again", `server { listen 127.0.0.1:8080;
			location /a { error_page 404 = @n; return 404; }
			location @n { set $n 1; rewrite ^ /b last; }
			location /b { return 200 "b $uri $n"; }
			location /r { try_files $uri @loop; } location @loop { rewrite ^ /r last; }
		}`, []row{{ask: "GET /a", want: "200 | b /b 1"}, {ask: "GET /r", want: "500 | <page>"}}},
	})
}
