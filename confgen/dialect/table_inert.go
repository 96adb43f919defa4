package dialect

import "slices"

// process is what speaks of nginx's processes; there is no such process here.
var process = slices.Concat(
	rows(Main, 1, many, Noticed, "of nginx's processes, which are not here", `
		daemon master_process timer_resolution pid lock_file worker_processes debug_points user worker_priority
		worker_cpu_affinity worker_rlimit_nofile worker_rlimit_core worker_shutdown_timeout working_directory env pcre_jit
		thread_pool ssl_engine ssl_object_cache_inheritable quic_bpf google_perftools_profiles`),
	[]Directive{{"events", Main, 0, 0, true, Noticed, "of nginx's processes, which are not here"}},
	rows(Events, 1, 1, Noticed, "of nginx's processes, which are not here", `
		worker_connections use multi_accept accept_mutex accept_mutex_delay debug_connection epoll_events worker_aio_requests`),
	rows(Main|hsl, 1, many, Noticed, "messages go to standard error, from --log-level on", `
		error_log`),
)

// inert is what changes no byte that a client or a backend sees.
var inert = slices.Concat(
	rows(HTTP, 1, 1, Noticed, "tables here need no sizes", `
		variables_hash_max_size variables_hash_bucket_size server_names_hash_max_size server_names_hash_bucket_size
		map_hash_max_size map_hash_bucket_size`),
	rows(hsl, 1, 1, Noticed, "tables here need no sizes", `
		types_hash_max_size types_hash_bucket_size proxy_headers_hash_max_size proxy_headers_hash_bucket_size
		referer_hash_max_size referer_hash_bucket_size`),
	rows(hsl, 1, 4, Noticed, "memory is taken as it is needed", `
		connection_pool_size request_pool_size client_body_buffer_size client_body_in_single_buffer client_body_temp_path
		subrequest_output_buffer_size output_buffers postpone_output gzip_buffers gzip_window gzip_hash postpone_gzipping
		gzip_no_buffer gunzip_buffers proxy_buffers proxy_busy_buffers_size proxy_temp_path proxy_max_temp_file_size
		proxy_temp_file_write_size`),
	rows(hsli, 1, 4, Noticed, "of system calls; changes no answer", `
		sendfile sendfile_max_chunk aio aio_write read_ahead directio directio_alignment tcp_nopush tcp_nodelay send_lowat
		lingering_close lingering_time lingering_timeout reset_timedout_connection proxy_socket_keepalive proxy_socket_rcvbuf
		proxy_socket_sndbuf proxy_send_lowat grpc_socket_keepalive grpc_socket_rcvbuf grpc_socket_sndbuf`),
	rows(hsl, 1, 4, Noticed, "of files on disk, which are not served", `
		log_not_found if_modified_since max_ranges etag open_file_cache open_file_cache_valid open_file_cache_min_uses
		open_file_cache_errors open_file_cache_events disable_symlinks autoindex_format autoindex_localtime autoindex_exact_size
		gzip_static`),
	rows(hsli|ServerIf, 1, 4, Noticed, "of nginx's own messages and files", `
		open_log_file_cache rewrite_log uninitialized_variable_warn`),
	rows(hsl, 1, many, Noticed, "read for servers with resolve, and for a proxy_pass whose host has variables", `
		resolver resolver_timeout`),
	rows(hsl, 1, 1, Noticed, "error pages here have no padding", `
		msie_padding`),
	rows(hsl, 1, 1, Noticed, "nothing here counts by zones of nginx Plus", `
		status_zone`),
	rows(hs, 1, many, Noticed, "of the TLS library; changes no answer", `
		ssl_buffer_size ssl_certificate_cache ssl_certificate_compression ssl_dhparam ssl_prefer_server_ciphers`),
	rows(hs, 1, many, Noticed, "sessions are resumed by tickets (ssl_session_tickets), which need no cache", `
		ssl_session_cache`),
	rows(hs, 1, many, Noticed, "no OCSP answer is stapled: a client that wants one asks for itself", `
		ssl_stapling ssl_stapling_file ssl_stapling_responder ssl_stapling_verify`),
	rows(hs, 1, many, Noticed, "without effect: ssl_ocsp is refused where it is turned on", `
		ssl_ocsp_cache ssl_ocsp_responder`),
	rows(hsl, 1, 1, Noticed, "of memory and of frames; changes no answer", `
		http2_body_preread_size http2_chunk_size http2_pool_size http2_recv_buffer_size http2_streams_index_size`),
	rows(hs, 1, 1, Noticed, "gone from nginx too: keepalive_timeout, client_header_timeout, keepalive_requests and large_client_header_buffers hold", `
		http2_idle_timeout http2_recv_timeout http2_max_requests http2_max_field_size http2_max_header_size`),
	rows(hsl, 1, 1, Noticed, "gone from nginx too: nothing is pushed", `
		http2_push http2_push_preload http2_max_concurrent_pushes`),
	rows(hsl, 1, many, Noticed, "without effect: HTTP/3 is refused where it is turned on", `
		http3_hq http3_max_concurrent_streams http3_stream_buffer_size quic_retry quic_gso quic_host_key
		quic_active_connection_id_limit`),
	rows(hsl, 1, many, Noticed, "without effect: there is no zone of a cache", `
		proxy_cache_background_update proxy_cache_bypass proxy_cache_convert_head proxy_cache_key proxy_cache_lock
		proxy_cache_lock_age proxy_cache_lock_timeout proxy_cache_max_range_offset proxy_cache_methods proxy_cache_min_uses
		proxy_cache_revalidate proxy_cache_use_stale proxy_cache_valid proxy_no_cache`),
	rows(hsl, 1, 3, Noticed, "without effect: nothing is stored", `
		proxy_store_access`),
	rows(hsl, 1, many, Noticed, "without effect: fastcgi_pass is refused", `
		fastcgi_bind fastcgi_buffer_size fastcgi_buffering fastcgi_buffers fastcgi_busy_buffers_size fastcgi_cache
		fastcgi_cache_background_update fastcgi_cache_bypass fastcgi_cache_key fastcgi_cache_lock fastcgi_cache_lock_age
		fastcgi_cache_lock_timeout fastcgi_cache_max_range_offset fastcgi_cache_methods fastcgi_cache_min_uses
		fastcgi_cache_revalidate fastcgi_cache_use_stale fastcgi_cache_valid fastcgi_catch_stderr fastcgi_connect_timeout
		fastcgi_force_ranges fastcgi_hide_header fastcgi_ignore_client_abort fastcgi_ignore_headers fastcgi_index
		fastcgi_intercept_errors fastcgi_keep_conn fastcgi_limit_rate fastcgi_max_temp_file_size fastcgi_next_upstream
		fastcgi_next_upstream_timeout fastcgi_next_upstream_tries fastcgi_no_cache fastcgi_param fastcgi_pass_header
		fastcgi_pass_request_body fastcgi_pass_request_headers fastcgi_read_timeout fastcgi_request_buffering fastcgi_send_lowat
		fastcgi_send_timeout fastcgi_socket_keepalive fastcgi_socket_rcvbuf fastcgi_socket_sndbuf fastcgi_split_path_info
		fastcgi_store fastcgi_store_access fastcgi_temp_file_write_size fastcgi_temp_path`),
	rows(hsl, 1, many, Noticed, "without effect: uwsgi_pass is refused", `
		uwsgi_bind uwsgi_buffer_size uwsgi_buffering uwsgi_buffers uwsgi_busy_buffers_size uwsgi_cache
		uwsgi_cache_background_update uwsgi_cache_bypass uwsgi_cache_key uwsgi_cache_lock uwsgi_cache_lock_age
		uwsgi_cache_lock_timeout uwsgi_cache_max_range_offset uwsgi_cache_methods uwsgi_cache_min_uses uwsgi_cache_revalidate
		uwsgi_cache_use_stale uwsgi_cache_valid uwsgi_connect_timeout uwsgi_force_ranges uwsgi_hide_header
		uwsgi_ignore_client_abort uwsgi_ignore_headers uwsgi_intercept_errors uwsgi_limit_rate uwsgi_max_temp_file_size
		uwsgi_modifier1 uwsgi_modifier2 uwsgi_next_upstream uwsgi_next_upstream_timeout uwsgi_next_upstream_tries uwsgi_no_cache
		uwsgi_param uwsgi_pass_header uwsgi_pass_request_body uwsgi_pass_request_headers uwsgi_read_timeout
		uwsgi_request_buffering uwsgi_send_timeout uwsgi_socket_keepalive uwsgi_socket_rcvbuf uwsgi_socket_sndbuf
		uwsgi_ssl_certificate uwsgi_ssl_certificate_cache uwsgi_ssl_certificate_key uwsgi_ssl_ciphers uwsgi_ssl_conf_command
		uwsgi_ssl_crl uwsgi_ssl_name uwsgi_ssl_password_file uwsgi_ssl_protocols uwsgi_ssl_server_name uwsgi_ssl_session_reuse
		uwsgi_ssl_trusted_certificate uwsgi_ssl_verify uwsgi_ssl_verify_depth uwsgi_store uwsgi_store_access uwsgi_string
		uwsgi_temp_file_write_size uwsgi_temp_path`),
	rows(hsl, 1, many, Noticed, "without effect: scgi_pass is refused", `
		scgi_bind scgi_buffer_size scgi_buffering scgi_buffers scgi_busy_buffers_size scgi_cache scgi_cache_background_update
		scgi_cache_bypass scgi_cache_key scgi_cache_lock scgi_cache_lock_age scgi_cache_lock_timeout scgi_cache_max_range_offset
		scgi_cache_methods scgi_cache_min_uses scgi_cache_revalidate scgi_cache_use_stale scgi_cache_valid scgi_connect_timeout
		scgi_force_ranges scgi_hide_header scgi_ignore_client_abort scgi_ignore_headers scgi_intercept_errors scgi_limit_rate
		scgi_max_temp_file_size scgi_next_upstream scgi_next_upstream_timeout scgi_next_upstream_tries scgi_no_cache scgi_param
		scgi_pass_header scgi_pass_request_body scgi_pass_request_headers scgi_read_timeout scgi_request_buffering
		scgi_send_timeout scgi_socket_keepalive scgi_socket_rcvbuf scgi_socket_sndbuf scgi_store scgi_store_access
		scgi_temp_file_write_size scgi_temp_path`),
	rows(hsl, 1, many, Noticed, "without effect: memcached_pass is refused", `
		memcached_bind memcached_buffer_size memcached_connect_timeout memcached_gzip_flag memcached_next_upstream
		memcached_next_upstream_timeout memcached_next_upstream_tries memcached_read_timeout memcached_send_timeout
		memcached_socket_keepalive`),
	rows(hsl|LimitExcept, 1, 2, Noticed, "without effect: auth_basic and auth_request are refused where they are turned on", `
		auth_basic_user_file auth_request_set auth_delay`),
	rows(hsl, 1, many, Noticed, "without effect: the filter itself is refused where it is turned on", `
		ssi_silent_errors ssi_ignore_recycled_buffers ssi_min_file_chunk ssi_value_length ssi_types ssi_last_modified
		sub_filter_types sub_filter_once sub_filter_last_modified addition_types mirror_request_body userid_domain
		userid_expires userid_flags userid_mark userid_name userid_p3p userid_path userid_service`),
	rows(hsl, 1, 1, Noticed, "without effect: there is no slow reading of limit_rate", `
		limit_rate_after`),
	rows(hs, 1, many, Noticed, "Tengine's; the Server field is ours", `
		server_tag`),
)
