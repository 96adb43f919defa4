package conformance

import (
	"fmt"
	"net"
	"regexp"
	"strings"
)

// listen is where the server under test takes requests, in the namespace of the case.
const listen = "127.0.0.1:19000"

// firstVariable is where those of upstrands begin in logged.
const firstVariable = 4

// logged is what the access log of a case holds, by short name. Those of upstrands only where the server knows them.
var logged = [][2]string{
	{"rid", "http_x_rid"}, {"addr", "upstream_addr"}, {"us", "upstream_status"}, {"st", "status"}, {"up", "upstrand_path"},
	{"ua", "upstrand_addr"}, {"ust", "upstrand_status"}, {"ucs", "upstrand_cache_status"}, {"uct", "upstrand_connect_time"},
	{"uht", "upstrand_header_time"}, {"url", "upstrand_response_length"}, {"urt", "upstrand_response_time"},
}

var symbol = regexp.MustCompile(`\bserver\s+(s\d+)\b`)

// Variables are those of upstrands in the access log: short name and name.
func Variables() [][2]string { return logged[firstVariable:] }

// literal puts the recorded addresses in place of the symbols.
func (v *Vector) literal(conf string) string {
	return symbol.ReplaceAllStringFunc(conf, func(text string) string {
		name := strings.TrimSpace(strings.TrimPrefix(text, "server"))
		if addr := v.ServerAddresses[name]; addr != "" {
			name = addr
		}
		return "server " + name
	})
}

// File is the whole configuration of the case, with files in dir. A real nginx needs a few lines more.
func (v *Vector) File(dir string, nginx bool) string {
	var b strings.Builder
	if nginx {
		fmt.Fprintf(&b, "daemon off; worker_processes %d; user root; pid %s/nginx.pid; error_log %s/error.log warn;\n", max(v.Workers, 1), dir, dir)
		b.WriteString("events { worker_connections 4096; }\n")
	}
	b.WriteString("http {\n")
	if nginx {
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			fmt.Fprintf(&b, " %s_temp_path %s/%s;\n", kind, dir, kind)
		}
	}
	var format []string
	for _, kv := range logged {
		if !nginx || !strings.HasPrefix(kv[1], "upstrand") {
			format = append(format, fmt.Sprintf(`"%s":"$%s"`, kv[0], kv[1]))
		}
	}
	fmt.Fprintf(&b, " log_format j escape=json '{%s}';\n access_log off;\n", strings.Join(format, ","))
	fmt.Fprintf(&b, " set_real_ip_from 127.0.0.0/8; real_ip_header X-Client-IP;\n proxy_connect_timeout 500ms;\n")
	fmt.Fprintf(&b, " proxy_read_timeout %s; proxy_http_version %s; client_max_body_size 10m;\n", or(v.ReadTimeout, "500ms"), or(v.HTTPVersion, "1.0"))
	fmt.Fprintf(&b, "%s\n server {\n  listen %s;\n  access_log %s/access.log j;\n%s\n }\n}\n", v.literal(v.HTTPConf), listen, dir, v.literal(v.ServerConf))
	return b.String()
}

func or(text, def string) string {
	if text == "" {
		return def
	}
	return text
}

// HostPort is the address that a server text means.
func HostPort(text string) string {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, "80"
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
