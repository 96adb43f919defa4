package site

import "testing"

// TestTowardsUpstreams is where the core meets proxy_pass: what the backend is asked for after the path was changed.
func TestTowardsUpstreams(t *testing.T) {
	run(t, []table{
		{"a missing slash is redirected, unless another location takes the path", `server { listen 127.0.0.1:8080;
			location / { return 200 root; }
			location /x/ { proxy_pass http://u; }
			location /y/ { proxy_pass http://u/; }
			location /y { return 200 y; }
			location = /z { return 200 z; }
			location ^~ /z/ { proxy_pass http://u; }
			location = /e/ { proxy_pass http://u; }
			location "/s p/" { proxy_pass http://u; }
			location /r/ { return 200 r; }
			location /w/ { proxy_pass http://u; location /w/v/ { proxy_pass http://u; } }
			location ~ ^/x$ { return 200 never; }
			location /i/ { internal; proxy_pass http://u; }
			location /f/ { if ($arg_a) { proxy_pass http://u; } return 200 f; }
		}`, []row{
			{ask: "GET /x", want: "301 http://test.example:8080/x/ | <page>"}, {ask: "GET /x?a=b", want: "301 http://test.example:8080/x/?a=b | <page>"}, {ask: "POST /x", want: "301 http://test.example:8080/x/ | <page>"},
			{ask: "GET /x/1", want: "200 | GET /x/1"}, {ask: "GET /y", want: "200 | y"}, {ask: "GET /z", want: "200 | z"}, {ask: "GET /z/", want: "200 | GET /z/"},
			{ask: "GET /e", want: "301 http://test.example:8080/e/ | <page>"}, {ask: "GET /e/1", want: "200 | root"}, {ask: "GET /s%20p", want: "301 http://test.example:8080/s%20p/ | <page>"},
			{ask: "GET /r", want: "200 | root"}, {ask: "GET /w", want: "301 http://test.example:8080/w/ | <page>"}, {ask: "GET /w/v", want: "301 http://test.example:8080/w/v/ | <page>"},
			{ask: "GET /i", want: "404 | <page>"}, {ask: "GET /f", want: "200 | root"}, {ask: "GET //x//", want: "200 | GET //x//"}, {ask: "GET /%78", want: "301 http://test.example:8080/x/ | <page>"},
		}},
		{"the changed path goes on, escaped; the unchanged one as it came", `server { listen 127.0.0.1:8080;
			location /a/ { proxy_pass http://u; }
			location /b/ { proxy_pass http://u/y/; }
			location /c/ { rewrite ^/c/(.*)$ /n/$1 break; proxy_pass http://u; }
			location /d/ { rewrite ^/d/(.*)$ /n/$1 break; proxy_pass http://u/y/; }
			location /e/ { rewrite ^/e/(.*)$ /b/$1 last; }
			location /f/ { break; proxy_pass http://u/y/; }
			location ~ ^/g/(.*)$ { proxy_pass http://u/y/$1; }
			location ~ ^/h/(.*)$ { set $v $1; proxy_pass http://u/y/$v; }
			location /i/ { set $args "k=v"; proxy_pass http://u; }
			location /j/ { if ($arg_a) { rewrite ^/j/(.*) /n/$1 break; } proxy_pass http://u/y/; }
		}`, []row{
			{ask: "GET /a/../a/%41%20b?x=%41", want: "200 | GET /a/../a/%41%20b?x=%41"}, {ask: "GET /b/%41%20%3F%25b?x=%41", want: "200 | GET /y/A%20%3F%25b?x=%41"},
			{ask: "GET /c/%41%20b?x", want: "200 | GET /n/A%20b?x"}, {ask: "GET /d/%41?x", want: "200 | GET /n/A?x"}, {ask: "GET /e/%41?x", want: "200 | GET /y/A?x"},
			{ask: "GET /f/1", want: "200 | GET /y/1"}, {ask: "GET /g/1?x", want: "200 | GET /y/1"}, {ask: "GET /h/a%20b", want: "200 | GET /y/a%20b"}, {ask: "GET /i/%41?q", want: "200 | GET /i/A?k=v"},
			{ask: "GET /j/1?a=1", want: "200 | GET /n/1?a=1"}, {ask: "GET /j/1", want: "200 | GET /y/1"}, {ask: "GET /b/?", want: "200 | GET /y/"}, {ask: "GET /a/?", want: "200 | GET /a/?"},
		}},
		{"if, and what a location inherits of proxying", `server { listen 127.0.0.1:8080;
			location /a { proxy_pass http://u; if ($arg_a) { set $x 1; } location /a/b { } }
			location /c { if ($arg_a) { proxy_pass http://u; } }
			location /d { proxy_pass http://u; if ($arg_a) { return 204; } }
			location /e { proxy_pass http://u; try_files $uri @n; } location @n { proxy_pass http://u; }
			location /f { error_page 404 = @n; return 404; }
			location /g { error_page 502 =200 /f; proxy_intercept_errors on; error_page 404 = @h; proxy_pass http://u; } location @h { return 200 "h $uri"; }
			location /p { error_page 405 /a/post; return 405; }
		}`, []row{
			{ask: "GET /a?a=1", want: "200 | GET /a?a=1"}, {ask: "GET /a/b", want: "404 | <page>"}, {ask: "GET /c?a=1", want: "200 | GET /c?a=1"}, {ask: "GET /c", want: "404 | <page>"},
			{ask: "GET /d?a=1", want: "204"}, {ask: "GET /e?x", want: "200 | GET /e?x"}, {ask: "POST /f?x", want: "200 | POST /f?x"}, {ask: "GET /g?status=404", want: "200 | h /g"},
			{ask: "GET /g?status=403", want: "403 | GET /g?status=403"}, {ask: "POST /p", want: "405 | GET /a/post"},
		}},
	})
}
