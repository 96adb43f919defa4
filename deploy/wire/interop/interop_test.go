package interop

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// cases are those of gRPC's interop client that say something about what is between it and the server; those left out are
// about credentials of a cloud, name resolution, and compression that this client does not have.
const cases = `empty_unary large_unary client_streaming server_streaming ping_pong empty_stream timeout_on_sleeping_server
	cancel_after_begin cancel_after_first_response status_code_and_message special_status_message custom_metadata
	unimplemented_method unimplemented_service`

// TestInterop: every case passes through the proxy as it does without.
func TestInterop(t *testing.T) {
	client := build(t, "google.golang.org/grpc/interop/client", ".")
	p := start(t)
	for name, args := range map[string][]string{
		"h2c": {"-server_port", p.plain},
		"TLS": {"-server_port", p.secure, "-use_tls", "-use_test_ca", "-ca_file", p.cert, "-server_host_override", "proxy.example"},
	} {
		for _, c := range strings.Fields(cases) {
			t.Run(name+"/"+c, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				out, err := exec.CommandContext(ctx, client, append([]string{"-server_host", "127.0.0.1", "-test_case", c}, args...)...).CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
