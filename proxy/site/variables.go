package site

import (
	"os"
	"strconv"
	"time"

	"github.com/upstrand/upstrand/proxy/script"
)

type (
	definition  = script.Definition[*request]
	definitions = map[string]definition
	families    = map[string]func(rest string) (script.Func[*request], bool)
)

// knownVariables are those of requests, and of upstreams and answers.
func knownVariables(o Options) script.Known[*request] {
	known := script.Known[*request]{Names: definitions{}, Families: families{}, Missing: o.missing}
	for _, names := range []definitions{requestVariables, clockVariables, refusedVariables, upstrandVariables, proxyVariables, answerVariables, protocolVariables, limitVariables, topologyVariables, tlsVariables, refusedTLS} {
		for name, d := range names {
			known.Names[name] = d
		}
	}
	for _, all := range []families{requestFamilies, proxyFamilies, answerFamilies, protocolFamilies} {
		for name, of := range all {
			known.Families[name] = of
		}
	}
	known.Families["upstrand_"] = o.upstrandFamily
	return known
}

// always is a variable that every request has.
func always(f func(r *request) string) definition {
	return definition{Get: func(r *request) (string, bool) { return f(r), true }}
}

// maybe is a variable that counts as absent when it is empty.
func maybe(f func(r *request) string) definition {
	return definition{Get: func(r *request) (string, bool) { s := f(r); return s, s != "" }}
}

// never is a variable that no request has here, as nginx has it on a plain connection.
func never() definition { return definition{Get: absent} }

func absent(*request) (string, bool) { return "", false }

var hostname, _ = os.Hostname()

var requestVariables = definitions{
	"uri":                 always(func(r *request) string { return r.uri }),
	"document_uri":        always(func(r *request) string { return r.uri }),
	"request_uri":         always(func(r *request) string { return textOf(r.in.Target) }),
	"query_string":        maybe(func(r *request) string { return r.args }),
	"args":                {Get: func(r *request) (string, bool) { return r.args, r.args != "" }, Set: func(r *request, s string) { r.args, r.whole = s, false }},
	"is_args":             maybe(isArgs),
	"request":             appended(appendRequestLine),
	"request_method":      always(func(r *request) string { return textOf(r.method) }),
	"request_length":      number(requestLength),
	"request_id":          {Get: func(r *request) (string, bool) { return r.identity(), true }},
	"request_body":        {Refuse: "is not kept"},
	"host":                always(func(r *request) string { return r.host }),
	"http_host":           maybe(func(r *request) string { return textOf(r.in.Authority) }),
	"hostname":            always(func(*request) string { return hostname }),
	"server_name":         always(func(r *request) string { return r.server.name }),
	"server_port":         number(func(r *request) int64 { return int64(r.in.Local.Port()) }),
	"server_addr":         maybePlain(func(b []byte, r *request) []byte { return appendAddress(b, r.in.Local.Addr()) }),
	"server_protocol":     always(func(r *request) string { return r.proto() }),
	"scheme":              always(scheme),
	"https":               maybe(func(r *request) string { return map[bool]string{true: "on"}[r.in.Secure] }),
	"remote_addr":         plain(func(b []byte, r *request) []byte { return appendAddress(b, r.remote) }),
	"remote_port":         plain(func(b []byte, r *request) []byte { return appendPort(b, r.remotePort) }),
	"binary_remote_addr":  always(func(r *request) string { return string(r.remote.Unmap().AsSlice()) }),
	"remote_user":         maybe(remoteUser),
	"content_length":      maybe(contentLength),
	"content_type":        maybe(func(r *request) string { return r.header("Content-Type") }),
	"status":              plain(appendStatusText),
	"pid":                 always(func(*request) string { return strconv.Itoa(os.Getpid()) }),
	"pipe":                always(func(*request) string { return "." }),
	"nginx_version":       always(func(*request) string { return "1.31.5" }),
	"connection":          number(func(r *request) int64 { return int64(r.in.Connection) }),
	"connection_requests": number(func(r *request) int64 { return r.in.Served }),
	"http2":               maybe(http2Name), "http3": never(), "ech_status": never(),
}

// refusedVariables say why there is nothing that they could stand for.
var refusedVariables = func() definitions {
	out := definitions{}
	for _, name := range []string{"document_root", "realpath_root", "request_filename", "request_body_file", "fastcgi_script_name", "fastcgi_path_info", "uid_got", "uid_set"} {
		out[name] = definition{Refuse: "is about what is not served here: files and other protocols than HTTP"}
	}
	for _, name := range []string{"limit_rate", "tcpinfo_rtt", "tcpinfo_rttvar", "tcpinfo_snd_cwnd", "tcpinfo_rcv_space"} {
		out[name] = definition{Refuse: "is not kept"}
	}
	return out
}()

var requestFamilies = families{
	"arg_": func(name string) (script.Func[*request], bool) {
		return func(r *request) (string, bool) { return argument(r.args, name) }, true
	},
	"cookie_": func(name string) (script.Func[*request], bool) {
		return func(r *request) (string, bool) { return r.cookie(name) }, true
	},
	"http_": func(name string) (script.Func[*request], bool) {
		return func(r *request) (string, bool) { return headerVariable(r, name) }, true
	},
}

var clockVariables = definitions{
	"msec":            plain(func(b []byte, r *request) []byte { return appendSeconds(b, r.now()/int64(time.Millisecond)) }),
	"time_local":      plain(func(b []byte, r *request) []byte { return append(b, stampsOf(r.now()).local...) }),
	"time_iso8601":    plain(func(b []byte, r *request) []byte { return append(b, stampsOf(r.now()).iso...) }),
	"request_time":    plain(func(b []byte, r *request) []byte { return appendSeconds(b, r.took()) }),
	"connection_time": plain(func(b []byte, r *request) []byte { return appendSeconds(b, r.took()) }),
}

func isArgs(r *request) string {
	if r.args != "" {
		return "?"
	}
	return ""
}

func scheme(r *request) string {
	if r.in.Secure {
		return "https"
	}
	return "http"
}

// appendStatusText writes the status: it has three digits, 000 before there is an answer.
func appendStatusText(b []byte, r *request) []byte {
	status := r.status
	if r.errStatus != 0 {
		status = r.errStatus
	}
	if status < 100 {
		return append(b, '0', byte('0'+status/10), byte('0'+status%10))
	}
	return strconv.AppendInt(b, int64(status), 10)
}

// portText is a port, or nothing: a proxy in front need not say the client's.
func portText(port uint16) string {
	if port == 0 {
		return ""
	}
	return strconv.Itoa(int(port))
}
