package site

import (
	"strings"
	"testing"

	"github.com/upstrand/upstrand/proxy/upstrand"
)

// walkWorld has upstreams u1 to u5 of one server each, whose plays go by their number, b1 (6) as backup, and none.
const walkWorld = `
	upstream u1 { server 10.0.0.1:9001; } upstream u2 { server 10.0.0.2:9002; } upstream u3 { server 10.0.0.3:9003; }
	upstream two { server 10.0.0.4:9004 max_fails=0; server 10.0.0.5:9005 max_fails=0; }
	upstream b1 { server 10.0.0.6:9006; } upstream none { server 10.0.0.7:9007 down; }
	upstrand us { upstream ~^u; upstream b1 backup; order per_request; next_upstream_statuses error timeout 5xx; }
	upstrand posts { upstream ~^u; order per_request; next_upstream_statuses error 5xx non_idempotent; }
	upstrand pairs { upstream two; upstream none; upstream u1; order per_request; next_upstream_statuses error 404; }
	upstrand kept { upstream u1; upstream u2; order per_request; next_upstream_statuses 5xx; intercept_statuses 404 502 /instead?why=it;
		intercept_statuses 4xx @named; intercept_statuses 503 /round; }
	upstrand quick { upstream ~^u; order per_request; next_upstream_statuses timeout; next_upstream_timeout 100s; }
	log_format w '$upstrand_path|$upstrand_addr|$upstrand_status|$upstream_addr|$upstream_status';
	access_log /l w;
	dynamic_upstrand $high $arg_high;
	`

// TestWalks: what goes where, what the client gets, and what the log tells.
func TestWalks(t *testing.T) {
	conf := walkWorld + `
	server { listen 127.0.0.1:8080;
		error_page 503 /error;
		location / { proxy_pass http://$upstrand_us; }
		location /part/ { proxy_pass http://$upstrand_us/new$is_args$args; }
		location /set { set $to $upstrand_us; proxy_set_header X-Up $upstrand_us; proxy_pass http://$to; }
		location /host { proxy_set_header X-Up $upstrand_us; proxy_pass http://$upstrand_us; }
		location /posts { proxy_pass http://$upstrand_posts; }
		location /body { proxy_set_body "[$upstrand_posts]"; proxy_pass http://$upstrand_posts; }
		location /pairs { proxy_next_upstream error http_404; proxy_pass http://$upstrand_pairs; }
		location /kept { proxy_pass http://$upstrand_kept; }
		location /instead { return 200 "instead $args $upstrand_kept"; }
		location /round { proxy_pass http://$upstrand_kept; }
		location @named { proxy_pass http://b1; }
		location /quick { proxy_pass http://$upstrand_quick; }
		location /accel { proxy_pass http://u3; }
		location /to { proxy_pass http://$upstrand_us; }
		location /hooked { proxy_intercept_errors on; error_page 404 = @walk; proxy_pass http://u3; }
		location @walk { proxy_pass http://$upstrand_us; }
		location /high { proxy_pass http://$high; }
		location /if { if ($arg_x) { dynamic_upstrand $inner $arg_x; proxy_pass http://$inner; break; } return 200 no; }
		location /plain { add_header X-Up $upstrand_us always; proxy_pass http://u3; }
		location /both { add_header X-Other "[$upstrand_kept]"; proxy_pass http://$upstrand_us; }
		location /error { return 200 error; }
	}`
	for _, tc := range []struct {
		name, ask string
		plays     string // 1=status:503,2=refuse
		want      string // status | body
		tries     string
		log       string
		up        string // X-Up of the answer
	}{
		{name: "one stop", ask: "GET /x", want: "200 | from 10.0.0.1:9001", tries: "1 GET /x", log: "u1|(u1) 10.0.0.1:9001|(u1) 200|10.0.0.1:9001|200"},
		{name: "three", ask: "GET /x", plays: "1=status:503,2=refuse", want: "200 | from 10.0.0.3:9003", tries: "1 GET /x,3 GET /x",
			log: "u1 -> u2 -> u3|(u1) 10.0.0.1:9001 (u2)  (u3) 10.0.0.3:9003|(u1) 503 (u2)  (u3) 200|10.0.0.1:9001|503"},
		{name: "no error_page acts", ask: "GET /x", plays: "1=status:503,2=status:503,3=status:503,6=status:503", want: "503 | from 10.0.0.6:9006",
			tries: "1 GET /x,2 GET /x,3 GET /x,6 GET /x"},
		{name: "nor on what nobody answered", ask: "GET /x", plays: "1=refuse,2=refuse,3=refuse,6=hang", want: "504 | <page>", tries: "6 GET /x"},
		{name: "URI part", ask: "GET /part/x?a=1", plays: "1=close", want: "200 | from 10.0.0.2:9002", tries: "1 GET /new?a=1,2 GET /new?a=1"},
		{name: "by set", ask: "GET /set", plays: "1=close", want: "200 | from 10.0.0.2:9002", tries: "1 GET /set,2 GET /set"},
		{name: "POST stays", ask: "POST /x", plays: "1=status:500", want: "500 | from 10.0.0.1:9001", tries: "1 POST /x"},
		{name: "POST lost goes on", ask: "POST /x", plays: "1=close", want: "200 | from 10.0.0.2:9002", tries: "1 POST /x,2 POST /x"},
		{name: "POST may go on", ask: "POST /posts", plays: "1=status:500,2=status:500", want: "200 | from 10.0.0.3:9003", tries: "1 POST /posts,2 POST /posts,3 POST /posts"},
		{name: "a body of the configuration", ask: "POST /body", plays: "1=status:500", want: "200 | from 10.0.0.2:9002", tries: "1 POST /body [u1],2 POST /body [u2]"},
		{name: "own tries of each stop, and nobody", ask: "GET /pairs", plays: "4=close,5=close", want: "200 | from 10.0.0.1:9001", tries: "4 GET /pairs,5 GET /pairs,1 GET /pairs",
			log: "two -> none -> u1|(two)  (none)  (u1) 10.0.0.1:9001|(two)  (none)  (u1) 200|10.0.0.4:9004, 10.0.0.5:9005|502, 502"},
		{name: "a pass that ends well", ask: "GET /pairs", plays: "4=status:404", want: "200 | from 10.0.0.5:9005", tries: "4 GET /pairs,5 GET /pairs",
			log: "two|(two) 10.0.0.4:9004, 10.0.0.5:9005|(two) 404, 200|10.0.0.4:9004, 10.0.0.5:9005|404, 200"},
		{name: "intercepted", ask: "GET /kept", plays: "1=status:404", want: "200 | instead why=it u1", tries: "1 GET /kept",
			log: "u1 -> <intercepted>|(u1) 10.0.0.1:9001 (<intercepted>) |(u1) 404 (<intercepted>) |10.0.0.1:9001|404"},
		{name: "intercepted error of the last", ask: "GET /kept", plays: "1=status:500,2=refuse", want: "200 | instead why=it u2", tries: "1 GET /kept"},
		{name: "the first list that has it", ask: "POST /kept", plays: "1=status:410", want: "200 | from 10.0.0.6:9006", tries: "1 POST /kept,6 GET /kept",
			log: "u1 -> <intercepted>|(u1) 10.0.0.1:9001 (<intercepted>) 10.0.0.6:9006|(u1) 410 (<intercepted>) 200|10.0.0.1:9001|410"},
		{name: "in its place the last upstream", ask: "GET /kept", plays: "1=status:503,2=status:503", want: "503 | from 10.0.0.2:9002", tries: "1 GET /kept,2 GET /kept,2 GET /round"},
		{name: "not intercepted", ask: "GET /kept", plays: "1=status:500,2=status:501", want: "501 | from 10.0.0.2:9002", tries: "1 GET /kept,2 GET /kept"},
		{name: "time is up", ask: "GET /quick", plays: "1=hang,2=hang", want: "504 | <page>", tries: "1 GET /quick,2 GET /quick"},
		{name: "X-Accel-Redirect of a stop", ask: "GET /x", plays: "1=fields:X-Accel-Redirect=/error", want: "200 | from 10.0.0.1:9001", tries: "1 GET /x"},
		{name: "X-Accel-Redirect into a walk", ask: "GET /accel", plays: "3=fields:X-Accel-Redirect=/to,1=status:500", want: "200 | from 10.0.0.2:9002",
			tries: "3 GET /accel,1 GET /to,2 GET /to", log: "u1 -> u2|(u1) 10.0.0.1:9001 (u2) 10.0.0.2:9002|(u1) 500 (u2) 200|10.0.0.3:9003 : 10.0.0.1:9001|200 : 500"},
		{name: "error_page into a walk", ask: "GET /hooked", plays: "3=status:404,1=status:500", want: "200 | from 10.0.0.2:9002", tries: "3 GET /hooked,1 GET /hooked,2 GET /hooked"},
		{name: "chosen at http", ask: "GET /high?high=US", plays: "1=status:500", want: "200 | from 10.0.0.2:9002", tries: "1 GET /high?high=US,2 GET /high?high=US"},
		{name: "chosen in if", ask: "GET /if?x=posts", plays: "1=status:500", want: "200 | from 10.0.0.2:9002", tries: "1 GET /if?x=posts,2 GET /if?x=posts"},
		{name: "nothing chosen", ask: "GET /high", want: "500 | <page>"},
		{name: "read, not walked", ask: "GET /plain", plays: "3=status:500", want: "500 | from 10.0.0.3:9003", tries: "3 GET /plain", up: "u1",
			log: "u1|(u1) |(u1) |10.0.0.3:9003|500"},
		{name: "a second upstrand", ask: "GET /both", want: "200 | from 10.0.0.1:9001", tries: "1 GET /both"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTroupe(t, conf)
			for play := range strings.SplitSeq(tc.plays, ",") {
				server, does, _ := strings.Cut(play, "=")
				w.plays[server] = does
			}
			c := w.ask(tc.ask)
			if got := c.line(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if got := strings.Join(w.tries, ","); got != tc.tries {
				t.Errorf("sent %s, want %s", got, tc.tries)
			}
			if got := w.logged(); tc.log != "" && got != tc.log {
				t.Errorf("logged\n%s, want\n%s", got, tc.log)
			}
			if got := string(fieldList(c.fields).get("X-Up")); tc.up != "" && got != tc.up {
				t.Errorf("X-Up %s, want %s", got, tc.up)
			}
		})
	}
}

// TestEachStopIsNamed: a stop is asked by its own name, and variables tell it.
func TestEachStopIsNamed(t *testing.T) {
	w := newTroupe(t, walkWorld+`server { listen 127.0.0.1:8080; location / { proxy_set_header X-Up $upstrand_us; proxy_pass http://$upstrand_us; }
		location /tls { proxy_ssl_server_name on; proxy_pass https://$upstrand_us; } }`)
	w.heads = true
	w.plays["1"] = "status:500"
	w.ask("GET /")
	if got, want := strings.Join(w.tries, ","), "1 GET / u1 u1,2 GET / u2 u2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.wires = nil
	w.ask("GET /tls")
	if len(w.wires) != 2 || w.wires[0].ServerName != "u1" || w.wires[1].ServerName != "u2" || w.wires[1].Scheme != "https" {
		t.Errorf("%+v", w.wires)
	}
}

// TestJSONLogOfAWalk has the whole of it in one line that is JSON.
func TestJSONLogOfAWalk(t *testing.T) {
	w := newTroupe(t, walkWorld+`log_format j escape=json '{"path":"$upstrand_path","length":"$upstrand_response_length","connect":"$upstrand_connect_time",'
		'"header":"$upstrand_header_time","response":"$upstrand_response_time","cache":"$upstrand_cache_status"}';
		server { listen 127.0.0.1:8080; access_log /l j; location / { proxy_pass http://$upstrand_us; } location /no { return 204; } }`)
	w.plays["1"], w.plays["2"] = "status:500", "refuse"
	for ask, want := range map[string]string{
		"GET /": `{"path":"u1 -> u2 -> u3","length":"(u1) 18 (u2)  (u3) 18","connect":"(u1) 0.001 (u2)  (u3) 0.001",` +
			`"header":"(u1) 0.021 (u2)  (u3) 0.021","response":"(u1) 0.021 (u2)  (u3) 0.321","cache":"(u1)  (u2)  (u3) "}`,
		"GET /no": `{"path":"","length":"","connect":"","header":"","response":"","cache":""}`,
	} {
		w.ask(ask)
		if got := w.logged(); got != want {
			t.Errorf("%s\nlogged %s\nwant   %s", ask, got, want)
		}
	}
}

// TestUpstrandWithoutUpstreams, as one that was published may be.
func TestUpstrandWithoutUpstreams(t *testing.T) {
	w := newTroupe(t, walkWorld+`server { listen 127.0.0.1:8080; location / { proxy_pass http://$upstrand_us; } }`)
	w.walks["us"].State.Swap(upstrand.Spec{})
	if got := w.ask("GET /").line(); got != "502 | <page>" {
		t.Errorf("%s, want 502", got)
	}
}

func TestUpstrandFaults(t *testing.T) {
	for _, tc := range []struct{ conf, want string }{
		{"server { listen 127.0.0.1:8080; location / { proxy_pass http://$upstrand_nosuch; } }", `no upstrand "nosuch" is declared`},
		{"dynamic_upstrand d us; server { listen 127.0.0.1:8080; }", `variable name "d"`},
		{"dynamic_upstrand $uri us; server { listen 127.0.0.1:8080; }", "$uri is built in"},
		{"dynamic_upstrand $d; server { listen 127.0.0.1:8080; }", "invalid number of arguments"},
	} {
		_, faults := compileText(t, tc.conf)
		if len(faults) == 0 || !strings.Contains(faults[0].Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.conf, faults, tc.want)
		}
	}
}
