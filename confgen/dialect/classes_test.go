package dialect

import (
	"strings"
	"testing"
)

// TestClassesOfWhatIsUsed holds what public configurations of proxies use, beyond the plain ones, to what was decided for
// each name: what changes an answer is carried out or refused, and a notice is for the rest.
func TestClassesOfWhatIsUsed(t *testing.T) {
	for class, names := range map[Class]string{
		Supported: `proxy_redirect expires allow deny satisfy set_real_ip_from real_ip_header real_ip_recursive root index try_files
			chunked_transfer_encoding charset charset_types proxy_hide_header proxy_pass_header proxy_ignore_headers stub_status send_timeout
			large_client_header_buffers client_header_buffer_size proxy_pass_request_body proxy_pass_request_headers proxy_buffer_size
			proxy_cookie_path proxy_cookie_domain split_clients geo limit_except absolute_redirect server_name_in_redirect
			ignore_invalid_headers underscores_in_headers proxy_intercept_errors proxy_request_buffering gzip gzip_types map log_format limit_req limit_req_zone limit_conn limit_conn_zone
			ssl http2 ssl_certificate ssl_certificate_key ssl_protocols ssl_ciphers ssl_session_timeout ssl_client_certificate ssl_verify_client
			client_max_body_size keepalive_timeout proxy_next_upstream proxy_next_upstream_tries proxy_next_upstream_timeout
			grpc_pass grpc_set_header grpc_read_timeout http2_max_concurrent_streams`,
		Noticed: `proxy_cache_bypass proxy_no_cache proxy_buffers proxy_busy_buffers_size worker_rlimit_nofile log_not_found
			open_file_cache open_file_cache_valid open_file_cache_min_uses open_file_cache_errors etag if_modified_since
			fastcgi_read_timeout uwsgi_read_timeout fastcgi_buffers aio directio thread_pool pcre_jit worker_cpu_affinity worker_priority
			sendfile_max_chunk output_buffers proxy_max_temp_file_size reset_timedout_connection lingering_close lingering_time
			rewrite_log proxy_socket_keepalive env master_process server_tag worker_processes user pid error_log worker_connections use
			multi_accept sendfile tcp_nopush tcp_nodelay types_hash_max_size server_names_hash_bucket_size proxy_temp_path
			ssl_session_cache ssl_prefer_server_ciphers ssl_dhparam ssl_stapling ssl_stapling_verify resolver resolver_timeout`,
		Refused: `alias autoindex proxy_cache proxy_cache_path proxy_store http3 ssl_crl stream auth_request auth_basic
			fastcgi_pass uwsgi_pass ssi sub_filter perl js_import auth_jwt secure_link health_check check api load_module`,
	} {
		for _, name := range strings.Fields(names) {
			rows := byName()[name]
			if len(rows) == 0 {
				t.Errorf("%s is not known", name)
			}
			for _, row := range rows {
				if row.Class != class && row.In != Upstream {
					t.Errorf("%s in %s: %s, and is to be %s", name, row.In, row.Class, class)
				}
			}
		}
	}
}

// TestRefusalsOfSwitches: what is refused when it is on is dropped when it is off.
func TestRefusalsOfSwitches(t *testing.T) {
	for _, name := range strings.Fields(`http3 ssl_early_data ssl_ocsp proxy_cache proxy_store auth_basic auth_request ssi autoindex`) {
		if judges[name] == nil {
			t.Errorf("%s off is refused", name)
		}
	}
}
