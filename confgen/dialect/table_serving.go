package dialect

// serving is what servers and locations say of clients, of what is asked and of answers.
var serving = []Directive{
	// Which server, and the wire to the client.
	{"listen", Server, 1, many, false, Supported, ""},
	{"server_name", Server, 1, many, false, Supported, ""},
	{"client_max_body_size", hsl, 1, 1, false, Supported, ""},
	{"client_body_timeout", hsl, 1, 1, false, Supported, ""},
	{"client_header_timeout", hs, 1, 1, false, Supported, ""},
	{"client_header_buffer_size", hs, 1, 1, false, Supported, ""},
	{"large_client_header_buffers", hs, 2, 2, false, Supported, ""},
	{"ignore_invalid_headers", hs, 1, 1, false, Supported, ""},
	{"underscores_in_headers", hs, 1, 1, false, Supported, ""},
	{"merge_slashes", hs, 1, 1, false, Supported, ""},
	{"send_timeout", hsl, 1, 1, false, Supported, ""},
	{"keepalive_timeout", hsl, 1, 2, false, Supported, ""},
	{"keepalive_requests", hsl, 1, 1, false, Supported, ""},
	{"keepalive_time", hsl, 1, 1, false, Supported, ""},
	{"chunked_transfer_encoding", hsl, 1, 1, false, Supported, ""},

	// Who may, and who it is.
	{"allow", hsl | LimitExcept, 1, 1, false, Supported, ""},
	{"deny", hsl | LimitExcept, 1, 1, false, Supported, ""},
	{"satisfy", hsl, 1, 1, false, Supported, ""},
	{"set_real_ip_from", hsl, 1, 1, false, Supported, ""},
	{"real_ip_header", hsl, 1, 1, false, Supported, ""},
	{"real_ip_recursive", hsl, 1, 1, false, Supported, ""},

	// Which content.
	{"internal", Location, 0, 0, false, Supported, ""},
	{"try_files", Server | Location, 2, many, false, Supported, ""},
	{"root", hsli, 1, 1, false, Supported, ""},
	{"index", hsl, 1, many, false, Supported, ""},
	{"rewrite", sili, 2, 3, false, Supported, ""},
	{"return", sili, 1, 2, false, Supported, ""},
	{"break", sili, 0, 0, false, Supported, ""},
	{"set", sili, 2, 2, false, Supported, ""},
	{"error_page", hsli, 2, many, false, Supported, ""},
	{"recursive_error_pages", hsl, 1, 1, false, Supported, ""},
	{"stub_status", Server | Location, 0, 1, false, Supported, ""},
	{"echo", Location | LocationIf, 0, many, false, Supported, ""},
	{"echo_status", Location | LocationIf, 1, 1, false, Supported, ""},
	{"dynamic_upstrand", HTTP | Server | Location | LocationIf, 2, many, false, Supported, ""},

	// The answer's head and body.
	{"default_type", hsl, 1, 1, false, Supported, ""},
	{"add_header", hsli, 2, 3, false, Supported, ""},
	{"expires", hsli, 1, 2, false, Supported, ""},
	{"server_tokens", hsl, 1, 1, false, Supported, ""},
	{"absolute_redirect", hsl, 1, 1, false, Supported, ""},
	{"port_in_redirect", hsl, 1, 1, false, Supported, ""},
	{"server_name_in_redirect", hsl, 1, 1, false, Supported, ""},
	{"charset", hsli, 1, 1, false, Supported, ""},
	{"charset_types", hsl, 1, many, false, Supported, ""},
	{"gzip", hsli, 1, 1, false, Supported, ""},
	{"gzip_types", hsl, 1, many, false, Supported, ""},
	{"gzip_comp_level", hsl, 1, 1, false, Supported, ""},
	{"gzip_min_length", hsl, 1, 1, false, Supported, ""},
	{"gzip_vary", hsl, 1, 1, false, Supported, ""},
	{"gzip_http_version", hsl, 1, 1, false, Supported, ""},
	{"gzip_proxied", hsl, 1, many, false, Supported, ""},
	{"gzip_disable", hsl, 1, many, false, Supported, ""},

	// The log.
	{"log_format", HTTP, 2, many, false, Supported, ""},
	{"access_log", hsli | LimitExcept, 1, many, false, Supported, ""},
}
