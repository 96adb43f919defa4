package site

import (
	"strings"
	"testing"
)

// TestFaultsOfRules: geo, split_clients, limit_except, and folders of files where they could take effect.
func TestFaultsOfRules(t *testing.T) {
	for name, tc := range map[string]struct {
		text string   // of http, from line 2 on
		want []string // each a part of the fault of that place
	}{
		"geo: names":               {"geo host $g { default 1; }\ngeo $host g { default 1; }\ngeo $nope $g { default 1; }\ngeo $host { default 1; }", []string{`:2: geo: variable "host"`, `:3: geo: variable "g"`, ":5: geo: $host is built in", ":4: geo: no variable $nope"}},
		"geo: networks":            {"geo $g {\n10.0.0/8 a;\n10.0.0.0/33 b;\n10.0.0.1-10.0.0.2 c;\nproxy here;\ndelete there;\n}", []string{":3: 10.0.0/8:", ":4: 10.0.0.0/33:", ":5: 10.0.0.1-10.0.0.2:", ":6: proxy:", ":7: delete:"}},
		"geo: ranges":              {"geo $g { ranges;\n10.0.0.1-10.0.0.9 a;\n10.0.0.5-10.0.0.12 b;\n10.0.0.0/8 c;\n10.0.0.9-10.0.0.1 d;\n::1-::2 e;\ndelete x-y;\n}", []string{":4: 10.0.0.5-10.0.0.12: 10.0.0.5-10.0.0.12 overlaps another range", `:5: 10.0.0.0/8: "10.0.0.0/8" is no range`, ":6: 10.0.0.9-10.0.0.1:", ":7: ::1-::2:", ":8: delete:"}},
		"geo: ranges come first":   {"geo $g { default 1;\nranges; }", []string{":3: ranges: ranges must be the first line"}},
		"geo: words":               {"geo $g { 10.0.0.1 a b;\nfoo; }", []string{":2: 10.0.0.1: invalid number of values in geo", ":3: foo: invalid number of values in geo"}},
		"split_clients: name":      {"split_clients $host v { * a; }\nsplit_clients $nope $v { * a; }\nsplit_clients $host $uri { * a; }", []string{`:2: split_clients: variable "v"`, ":4: split_clients: $uri is built in", ":3: split_clients: no variable $nope"}},
		"split_clients: percent":   {"split_clients $host $v {\n0% a;\n0.001% b;\n10 c;\n-1% d;\n% e;\n.% f;\nx% g;\n99999999999999999999% h;\n}", []string{`:3: 0%: percent value "0%"; allowed: PERCENT% VALUE`, ":4: 0.001%", ":5: 10", ":6: -1%", ":7: %", ":8: .%", ":9: x%", ":10: 9999"}},
		"split_clients: too much":  {"split_clients $host $v {\n50% a;\n50.01% b;\n50% c;\n1% d;\n* e;\n0.01% f;\n}", []string{":4: 50.01%: the shares are more than 100%", ":6: 1%: the shares", ":8: 0.01%: the shares"}},
		"limit_except: methods":    {"server { location / { proxy_pass http://u;\nlimit_except GET FETCH { deny all; }\nlimit_except PUT { deny all; } } }", []string{`:3: limit_except: method "FETCH"; allowed: GET, HEAD`, ":4: limit_except: is duplicate"}},
		"limit_except: place":      {"server { limit_except GET { deny all; }\nlocation / { if ($args) { limit_except GET { deny all; } } } }", []string{":2: limit_except: is not allowed in server; allowed: location", ":3: limit_except: is not allowed in if in location"}},
		"limit_except: what in it": {"server { location / { proxy_pass http://u; limit_except GET {\nreturn 403;\nproxy_set_header A b;\nauth_basic realm;\nauth_basic_user_file f;\nproxy_pass http://u;\n} } }", []string{":3: return: is not allowed in limit_except", ":4: proxy_set_header: is not allowed in limit_except", ":5: auth_basic: not built"}},
		"limit_except: a URI part": {"server { location / { limit_except GET {\nproxy_pass http://u/; } } }", []string{":3: proxy_pass: a URI part can't stand in"}},
		"root: limit_except":       {"server { root /srv; location / { return 200 a; }\nlocation /a { proxy_pass http://u;\nlimit_except GET { allow 10.0.0.1; deny all; } }\nlocation /b { stub_status;\nlimit_except GET { allow 10.0.0.1; deny all; }\n}\nlocation /c { stub_status; limit_except GET { deny all; } } }", []string{":6: limit_except: files are not served here, and root /srv would serve them in location \"/b\""}},
		"root: nobody may":         {"server { root /srv; location / { return 200 a; }\nlocation ~ /\\.ht { deny all; }\nlocation ~ /\\.git { allow 10.0.0.1; deny all; } }", []string{`:4: location: files are not served here, and root /srv would serve them in location "/\\.git"`}},
		"root: try_files":          {"server { root /srv; location / { return 200 a; }\nlocation /a { try_files $uri @b; }\nlocation /c {\nproxy_pass http://u; try_files /maintenance.html @b; }\nlocation @b { proxy_pass http://u; } }", []string{`:3: location: files are not served here, and root /srv would serve them in location "/a"`, ":4: location: files are not served here, and try_files would look for them in root /srv in location \"/c\""}},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := compileText(t, tc.text)
			if len(faults) != len(tc.want) {
				t.Errorf("%d faults, want %d", len(faults), len(tc.want))
			}
			for i, f := range faults {
				if i >= len(tc.want) || !strings.Contains(f.Error(), tc.want[i]) {
					t.Errorf("fault %d: %s", i, f.Error())
				}
			}
		})
	}
}
