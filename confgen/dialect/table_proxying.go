package dialect

// proxying is what locations say of the way to a backend.
var proxying = []Directive{
	{"proxy_pass", Location | LocationIf | LimitExcept, 1, 1, false, Supported, ""},

	// What the backend gets.
	{"proxy_set_header", hsl, 2, 2, false, Supported, ""},
	{"proxy_method", hsl, 1, 1, false, Supported, ""},
	{"proxy_set_body", hsl, 1, 1, false, Supported, ""},
	{"proxy_pass_request_headers", hsl, 1, 1, false, Supported, ""},
	{"proxy_pass_request_body", hsl, 1, 1, false, Supported, ""},
	{"proxy_pass_trailers", hsl, 1, 1, false, Supported, ""},
	{"proxy_http_version", hsl, 1, 1, false, Supported, ""},
	{"proxy_request_buffering", hsl, 1, 1, false, Supported, ""},

	// What becomes of its answer.
	{"proxy_redirect", hsl, 1, 2, false, Supported, ""},
	{"proxy_cookie_domain", hsl, 1, 2, false, Supported, ""},
	{"proxy_cookie_path", hsl, 1, 2, false, Supported, ""},
	{"proxy_cookie_flags", hsl, 1, 4, false, Supported, ""},
	{"proxy_hide_header", hsl, 1, 1, false, Supported, ""},
	{"proxy_pass_header", hsl, 1, 1, false, Supported, ""},
	{"proxy_ignore_headers", hsl, 1, many, false, Supported, ""},
	{"proxy_intercept_errors", hsl, 1, 1, false, Supported, ""},
	{"proxy_buffering", hsl, 1, 1, false, Supported, ""},
	{"proxy_buffer_size", hsl, 1, 1, false, Supported, ""},
	{"proxy_ignore_client_abort", hsl, 1, 1, false, Supported, ""},

	// How long, and who is next.
	{"proxy_connect_timeout", hsl, 1, 1, false, Supported, ""},
	{"proxy_send_timeout", hsl, 1, 1, false, Supported, ""},
	{"proxy_read_timeout", hsl, 1, 1, false, Supported, ""},
	{"proxy_next_upstream", hsl, 1, many, false, Supported, ""},
	{"proxy_next_upstream_tries", hsl, 1, 1, false, Supported, ""},
	{"proxy_next_upstream_timeout", hsl, 1, 1, false, Supported, ""},

	// TLS to it.
	{"proxy_ssl_name", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_server_name", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_verify", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_verify_depth", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_trusted_certificate", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_certificate", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_certificate_key", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_protocols", hsl, 1, many, false, Supported, ""},
	{"proxy_ssl_ciphers", hsl, 1, 1, false, Supported, ""},
	{"proxy_ssl_session_reuse", hsl, 1, 1, false, Supported, ""},

	// gRPC.
	{"grpc_pass", Location | LocationIf, 1, 1, false, Supported, ""},
	{"grpc_set_header", hsl, 2, 2, false, Supported, ""},
	{"grpc_hide_header", hsl, 1, 1, false, Supported, ""},
	{"grpc_pass_header", hsl, 1, 1, false, Supported, ""},
	{"grpc_ignore_headers", hsl, 1, many, false, Supported, ""},
	{"grpc_intercept_errors", hsl, 1, 1, false, Supported, ""},
	{"grpc_buffer_size", hsl, 1, 1, false, Supported, ""},
	{"grpc_connect_timeout", hsl, 1, 1, false, Supported, ""},
	{"grpc_send_timeout", hsl, 1, 1, false, Supported, ""},
	{"grpc_read_timeout", hsl, 1, 1, false, Supported, ""},
	{"grpc_next_upstream", hsl, 1, many, false, Supported, ""},
	{"grpc_next_upstream_tries", hsl, 1, 1, false, Supported, ""},
	{"grpc_next_upstream_timeout", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_name", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_server_name", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_verify", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_verify_depth", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_trusted_certificate", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_certificate", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_certificate_key", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_protocols", hsl, 1, many, false, Supported, ""},
	{"grpc_ssl_ciphers", hsl, 1, 1, false, Supported, ""},
	{"grpc_ssl_session_reuse", hsl, 1, 1, false, Supported, ""},
}
