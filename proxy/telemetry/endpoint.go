package telemetry

import (
	"fmt"
	"net/url"
	"strings"
)

// Endpoint is where traces go by the standard's variables: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT as it stands, else
// OTEL_EXPORTER_OTLP_ENDPOINT with v1/traces below it. Empty: neither is set.
func Endpoint(getenv func(string) string) string {
	if whole := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); whole != "" {
		return whole
	}
	if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
		return strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	return ""
}

// Header is the fields of posts by the standard's variables OTEL_EXPORTER_OTLP_HEADERS and …_TRACES_HEADERS: NAME=VALUE with
// escaped values, separated by commas.
func Header(getenv func(string) string) (map[string]string, error) {
	all := map[string]string{}
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(variable), ",") {
			if strings.TrimSpace(pair) == "" {
				continue
			}
			name, value, ok := strings.Cut(pair, "=")
			plain, err := url.PathUnescape(strings.TrimSpace(value))
			if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
				return nil, fmt.Errorf("%s: %q: want NAME=VALUE, separated by commas", variable, strings.TrimSpace(name))
			}
			all[name] = plain
		}
	}
	return all, nil
}
