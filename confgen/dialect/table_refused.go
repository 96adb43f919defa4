package dialect

import "slices"

// refused is what would change an answer and is not carried out. Those with a judge (judge.go) are refused only when
// they are turned on.
var refused = slices.Concat(
	[]Directive{
		{"stream", Main, 0, 0, true, Refused, "TCP and UDP are not balanced in this version: leave them to nginx and take the block out"},
		{"mail", Main, 0, 0, true, Refused, "mail is not proxied: leave it to nginx and take the block out"},
		{"charset_map", HTTP, 2, 2, true, Refused, "bodies are not recoded: let the backend answer in the charset that is wanted"},
		{"match", HTTP, 1, 1, true, Refused, "nginx Plus': services are checked by upstrand beat --check"},
		{"otel_exporter", HTTP, 0, 0, true, Refused, "spans go where --otel-endpoint or OTEL_EXPORTER_OTLP_ENDPOINT says, by OTLP over HTTP: take it out"},
	},
	rows(Main, 1, 1, Refused, "modules of nginx can't be loaded: take the line out, and what the module brings is named where it is used", `
		load_module`),
	rows(hs, 1, 1, Refused, "HTTP/3 is not built: clients use HTTP/2", `
		http3`),
	rows(hs, 1, many, Refused, "whether a client's certificate was revoked is not looked up: give certificates a short life", `
		ssl_crl ssl_ocsp`),
	rows(hs, 1, many, Refused, "passwords of keys can't be given: write the key without one, such as by openssl pkey -in KEY -out NEW", `
		ssl_password_file`),
	rows(hs, 1, many, Refused, "not built in this version: take it out", `
		ssl_conf_command ssl_early_data ssl_ech_file`),
	rows(Location|LocationIf, 1, 1, Refused, "only HTTP backends are served: put an HTTP server in front of it and use proxy_pass", `
		fastcgi_pass uwsgi_pass scgi_pass memcached_pass`),
	rows(Server|Location|LocationIf, 0, 1, Refused, "forward proxying (CONNECT) is not built", `
		tunnel_pass`),
	rows(hsl, 0, many, Refused, "forward proxying (CONNECT) is not built", `
		tunnel_bind tunnel_buffer_size tunnel_connect_timeout tunnel_next_upstream tunnel_next_upstream_timeout
		tunnel_next_upstream_tries tunnel_read_timeout tunnel_send_lowat tunnel_send_timeout tunnel_socket_keepalive
		tunnel_socket_rcvbuf tunnel_socket_sndbuf`),
	rows(HTTP, 2, many, Refused, "answers are not cached: put a cache in front of this proxy, and proxy_cache off", `
		proxy_cache_path fastcgi_cache_path uwsgi_cache_path scgi_cache_path`),
	rows(hsl, 1, 1, Refused, "answers are not cached or stored: put a cache in front of this proxy", `
		proxy_cache proxy_store`),
	rows(hsl, 1, 2, Refused, "the source address can't be chosen in this version: use a route of the system", `
		proxy_bind grpc_bind`),
	rows(hsl, 0, many, Refused, "not built in this version: use a key without password, and proxy_ssl_trusted_certificate", `
		proxy_ssl_crl proxy_ssl_certificate_cache proxy_ssl_password_file proxy_ssl_conf_command grpc_ssl_crl
		grpc_ssl_certificate_cache grpc_ssl_password_file grpc_ssl_conf_command`),
	rows(hsli, 1, 1, Refused, "not built in this version", `
		proxy_force_ranges proxy_limit_rate limit_rate`),
	rows(hsl|LimitExcept, 1, 1, Refused, "not built in this version: let the backend ask, or use allow and deny", `
		auth_basic auth_request`),
	rows(hsl, 0, many, Refused, "nginx Plus': not built", `
		auth_jwt auth_jwt_key_file auth_oidc oidc_provider session_log session_log_zone api api_gateway`),
	rows(Location|Upstream, 0, many, Refused, "nginx Plus': services are checked by upstrand beat --check, and servers by max_fails", `
		health_check`),
	rows(HTTP|Upstream|Location, 0, many, Refused, "a third-party module: services are checked by upstrand beat --check, and servers by max_fails", `
		check check_http_send check_http_expect_alive check_keepalive_requests check_shm_size check_status`),
	rows(Upstream, 0, many, Refused, "nginx Plus': not built; take the line out", `
		ntlm state`),
	rows(Upstream|Location, 0, many, Refused, "a third-party module: use sticky cookie NAME", `
		sticky_cookie_insert jvm_route session_sticky session_sticky_hide_cookie`),
	rows(Upstream, 0, many, Refused, "a third-party module: use least_conn", `
		fair`),
	rows(Upstream, 0, many, Refused, "Tengine's: use hash KEY consistent", `
		consistent_hash`),
	rows(hsl, 0, many, Refused, "a third-party module: join and leave by beats", `
		dyups_upstream_conf dyups_interface`),
	rows(hsl, 1, 1, Refused, "files on disk are not served: proxy to a file server", `
		autoindex random_index`),
	rows(Location, 1, 1, Refused, "files on disk are not served: use proxy_pass or return, with a server of files behind it", `
		alias`),
	rows(hsl, 0, many, Refused, "files on disk are not served: proxy to a WebDAV server", `
		dav_methods create_full_put_path min_delete_depth dav_access dav_ext_methods`),
	rows(hsl, 0, many, Refused, "files on disk are not served: proxy to a file server", `
		empty_gif flv mp4 mp4_buffer_size mp4_max_buffer_size mp4_start_key_frame`),
	rows(hsl, 0, many, Refused, "not built: let the backend check links", `
		secure_link secure_link_md5 secure_link_secret`),
	rows(hsl, 1, 1, Refused, "answers are not cached, so they are not sliced: take it out", `
		slice`),
	rows(hsli, 1, 1, Refused, "bodies are not rewritten: let the backend do it", `
		ssi gunzip override_charset`),
	rows(hsli, 1, 1, Refused, "bodies are not recoded: let the backend answer in the charset that is wanted", `
		source_charset`),
	rows(hsl, 2, 2, Refused, "bodies are not rewritten: let the backend do it", `
		sub_filter`),
	rows(hsl, 1, 1, Refused, "bodies are not rewritten: let the backend do it", `
		add_before_body add_after_body`),
	rows(hsl, 1, 1, Refused, "use sticky cookie, or let the backend set it", `
		userid`),
	rows(hsl, 1, 1, Refused, "requests are not sent twice in this version", `
		mirror`),
	rows(hsli, 1, many, Refused, "not built in this version: take it out", `
		post_action early_hints add_trailer add_header_inherit add_trailer_inherit max_headers keepalive_min_timeout
		keepalive_disable client_body_early_read client_body_in_file_only msie_refresh log_subrequest`),
	rows(Server|Location, 1, many, Refused, "not built in this version: use map $http_referer", `
		valid_referers`),
	rows(hsl, 0, many, Refused, "not built: use map $http_user_agent", `
		modern_browser ancient_browser modern_browser_value ancient_browser_value`),
	rows(hsl, 0, many, Refused, "of nginx's processes: take it out", `
		degradation degrade`),
	rows(HTTP, 0, many, Refused, "not built: let a field of the request carry the place, and use map", `
		geoip_city geoip_country geoip_org geoip_proxy geoip_proxy_recursive geoip2 geoip2_proxy`),
	rows(hsl, 0, many, Refused, "bodies are not rewritten: let the backend do it", `
		image_filter image_filter_buffer image_filter_interlace image_filter_jpeg_quality image_filter_sharpen
		image_filter_transparency image_filter_webp_quality xslt_last_modified xslt_param xslt_string_param xslt_stylesheet
		xslt_types xml_entities xml_external_entities`),
	rows(hsl, 0, many, Refused, "no code is run: let the backend do it", `
		perl perl_modules perl_require perl_set`),
	rows(hsl, 0, many, Refused, "no code is run: use map, set and return, or let the backend do it", `
		js_import js_path js_set js_var js_content js_header_filter js_body_filter js_include js_periodic js_fetch_timeout
		js_preload_object`),
	rows(hsli, 1, many, Refused, "a third-party module: use add_header, proxy_hide_header and proxy_set_header", `
		more_set_headers more_clear_headers more_set_input_headers more_clear_input_headers`),
	rows(hsli, 1, many, Refused, "a third-party module: use gzip", `
		brotli brotli_types brotli_comp_level brotli_static brotli_min_length zstd`),
	rows(hsl, 0, many, Refused, "a third-party module: see /metrics and /debug on the admin port", `
		vhost_traffic_status vhost_traffic_status_zone vhost_traffic_status_display`),
	rows(Main|hsl, 0, many, Refused, "spans are made where --otel-endpoint or OTEL_EXPORTER_OTLP_ENDPOINT says where they go (--otel-sample, --otel-service-name): take it out", `
		opentracing opentracing_load_tracer otel_trace otel_trace_context otel_service_name otel_span_name otel_span_attr`),
	rows(hsl, 0, many, Refused, "no firewall of requests: keep it in front of this proxy", `
		modsecurity modsecurity_rules_file modsecurity_rules`),
	rows(hsl, 0, many, Refused, "bodies are not rewritten: let the backend do it", `
		pagespeed`),
	rows(Location|LocationIf, 0, many, Refused, "of the echo module only echo and echo_status are built", `
		echo_sleep echo_flush echo_read_request_body echo_location echo_location_async echo_subrequest echo_exec echo_duplicate
		echo_reset_timer echo_before_body echo_after_body echo_foreach_split echo_end echo_request_body`),
)
