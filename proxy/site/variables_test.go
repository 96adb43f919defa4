package site

import "testing"

func TestVariables(t *testing.T) {
	run(t, []table{
		{"of the request", `server { listen 127.0.0.1:8080; server_name name.example;
			location /u { return 200 "$uri $document_uri $request_uri $args $query_string $is_args"; }
			location /r { return 200 "$request|$request_method|$server_protocol|$scheme|$https|$server_port|$server_addr|$host|$http_host|$server_name"; }
			location /a { return 200 "[$arg_a][$arg_b][$arg_c]"; }
			location /h { return 200 "[$http_x_a][$http_x_b][$http_cookie][$content_type][$content_length]"; }
			location /c { return 200 "[$cookie_a][$cookie_b][$cookie_c]"; }
			location /s { return 200 "[$status][$remote_addr][$remote_user]"; }

		}`, []row{
			{ask: "GET /u/%41?x=%41&y", want: "200 | /u/A /u/A /u/%41?x=%41&y x=%41&y x=%41&y ?"}, {ask: "GET /u?", want: "200 | /u /u /u?   "},
			{ask: "GET /a?A=1&b&c=2&a=3", want: "200 | [1][][2]"}, {ask: "GET /a?xa=1&a=", want: "200 | [][][]"}, {ask: "GET /a?b=%20&&c==", want: "200 | [][%20][=]"},
			{ask: "GET /h", want: "200 | [1][][][t/p][3]", fields: []string{"X-A: 1", "Content-Type: t/p", "Content-Length: 3"}},
			{ask: "GET /c", want: "200 | [1][2][]", fields: []string{"Cookie: xa=0; A=1;  b = 2; ; c"}}, {ask: "GET /c", want: "200 | [x=y][][]", fields: []string{"Cookie: a=x=y"}},
			{ask: "GET /s", want: "200 | [200][127.0.0.1][bob]", fields: []string{"Authorization: Basic Ym9iOnB3"}},
		}},
	})
}
