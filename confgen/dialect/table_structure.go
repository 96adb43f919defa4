package dialect

// structure is the blocks, and what is carried out by reading the file.
var structure = []Directive{
	{"http", Main, 0, 0, true, Supported, ""},
	{"server", HTTP, 0, 0, true, Supported, ""},
	{"location", Server | Location, 1, 2, true, Supported, ""},
	{"if", Server | Location, 1, many, true, Supported, ""},
	{"limit_except", Location, 1, many, true, Supported, ""},
	{"upstream", HTTP, 1, 1, true, Supported, ""},
	{"upstrand", HTTP, 1, 1, true, Supported, ""},
	{"map", HTTP, 2, 2, true, Supported, ""},
	{"geo", HTTP, 1, 2, true, Supported, ""},
	{"split_clients", HTTP, 2, 2, true, Supported, ""},
	{"types", hsl, 0, 0, true, Supported, ""},
	{"include", Main | Events | HTTP | Server | Location | ServerIf | LocationIf | Upstream | Upstrand | LimitExcept | Entries, 1, 1, false, Supported, ""},
}

// forms say more than numbers of arguments where files of another module's version are about.
var forms = map[string]string{"sticky": "sticky cookie NAME …, sticky route $VARIABLE… or sticky learn …: the native ones"}

// upstreams is what stands in an upstream or an upstrand. topology.Expand carries it out.
var upstreams = []Directive{
	{"server", Upstream, 1, many, false, Supported, ""},
	{"discover", Upstream, 1, many, false, Supported, ""},
	{"least_conn", Upstream, 0, 0, false, Supported, ""},
	{"least_time", Upstream, 1, 2, false, Supported, ""},
	{"ip_hash", Upstream, 0, 0, false, Supported, ""},
	{"hash", Upstream, 1, 2, false, Supported, ""},
	{"random", Upstream, 0, 2, false, Supported, ""},
	{"sticky", Upstream, 2, many, false, Supported, ""},
	{"keepalive", Upstream, 1, 2, false, Supported, ""},
	{"keepalive_requests", Upstream, 1, 1, false, Supported, ""},
	{"keepalive_time", Upstream, 1, 1, false, Supported, ""},
	{"keepalive_timeout", Upstream, 1, 1, false, Supported, ""},
	{"queue", Upstream, 1, 2, false, Supported, ""},
	{"zone", Upstream, 1, 2, false, Supported, ""},
	{"resolver", Upstream, 1, many, false, Supported, ""},
	{"resolver_timeout", Upstream, 1, 1, false, Supported, ""},
	{"add_upstream", Upstream, 1, 3, false, Supported, ""},
	{"combine_server_singlets", Upstream, 0, 3, false, Supported, ""},
	{"extend_single_peers", Upstream, 0, 0, false, Supported, ""},
	{"upstream", Upstrand, 1, 3, false, Supported, ""},
	{"order", Upstrand, 1, 2, false, Supported, ""},
	{"next_upstream_statuses", Upstrand, 1, many, false, Supported, ""},
	{"next_upstream_timeout", Upstrand, 1, 1, false, Supported, ""},
	{"intercept_statuses", Upstrand, 2, many, false, Supported, ""},
}
