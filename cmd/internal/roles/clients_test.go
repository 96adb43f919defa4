package roles

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/accesslog"
)

func TestClientFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--trusted-proxies 10.0.0.0/8 --proxy-protocol": "", "--proxy-protocol": "only with --trusted-proxies",
		"--forwarded --via edge-1 --max-conns 5": "", "--via a,b": "1 to 64 letters", "--via edge/1": "1 to 64 letters",
		"--max-conns -1": "a whole number from 0", "--access-log --access-log-sample 0.1 --access-log-file /tmp/x": "",
		"--access-log-sample 0.1": "only with --access-log", "--access-log --access-log-sample 0": "a number from",
		"--access-log --access-log-file /no/such/x": "--access-log-file (UPSTRAND_ACCESS_LOG_FILE) is \"/no/such/x\": a file that can be written to is needed: folder /no/such: ",
		"--otel-sample 1.5":                         "a number from 0 to 1", "--otel-endpoint http://localhost:4318/v1/traces": "",
	} {
		fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
		set, x := settings.NewSet(fs), &Proxy{}
		x.Flags(set)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range set.Problems() {
			got += p.String() + "\n"
		}
		if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", args, got, want)
		}
	}
}

func TestAccessLogSettings(t *testing.T) {
	off := accessLog{File: "/dev/stderr", Sample: 1}
	if off.log() != (proxy.AccessLog{}) {
		t.Error("it is off")
	}
	on := accessLog{On: true, File: "x.log", Sample: 0.5, Buffer: 100, Flush: time.Second}
	if got := on.log(); got != (proxy.AccessLog{Path: "x.log", Sample: 0.5, Options: accesslog.Options{Buffer: 100, Flush: time.Second}}) {
		t.Errorf("%+v", got)
	}
}

func TestTraceSettings(t *testing.T) {
	p := &Process{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		t.Setenv(name, "")
	}
	if tracer, err := (&traces{Sample: 1}).open(p); tracer != nil || err != nil {
		t.Errorf("off: %v, %v", tracer, err)
	}
	if _, err := (&traces{Endpoint: "localhost:4318", Sample: 1}).open(p); err == nil {
		t.Error("an endpoint without a scheme")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	x := &traces{Sample: 1}
	if tracer, err := x.open(p); tracer == nil || err != nil {
		t.Errorf("by the standard's variable: %v, %v", tracer, err)
	}
	x.close(p)
}
