package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Config is where spans go and which are made.
type Config struct {
	Endpoint string            // URL that they are posted to, such as http://localhost:4318/v1/traces
	Header   map[string]string // of these posts
	Timeout  time.Duration     // of one of them (10 s)
	Client   *http.Client      // nil: one of its own

	Service string // service.name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES says it
	Version string // service.version
	// Sample is the part of the requests that are followed of those whose client does not say whether they are; 0 to 1.
	Sample float64
	// Exporter takes the spans, at once; nil: they go to Endpoint. For tests.
	Exporter sdk.SpanExporter
}

// Tracer makes spans. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// New makes a tracer. It needs no collector to be there: spans that can't be delivered are dropped.
func New(c Config) (*Tracer, error) {
	if c.Sample < 0 || c.Sample > 1 {
		return nil, fmt.Errorf("telemetry: sample %v: want 0 to 1", c.Sample)
	}
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName(c.Service), semconv.ServiceVersion(c.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: what this process is: %w", err)
	}
	options := []sdk.TracerProviderOption{sdk.WithResource(about), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Sample)))}
	if c.Exporter != nil {
		options = append(options, sdk.WithSyncer(c.Exporter))
	} else {
		poster, err := newPoster(c)
		if err != nil {
			return nil, err
		}
		options = append(options, sdk.WithBatcher(otlptrace.NewUnstarted(poster)))
	}
	t := &Tracer{provider: sdk.NewTracerProvider(options...)}
	t.tracer = t.provider.Tracer("github.com/upstrand/upstrand/proxy", trace.WithInstrumentationVersion(c.Version), trace.WithSchemaURL(semconv.SchemaURL))
	return t, nil
}

// Shutdown delivers what is left, as far as ctx lets it.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// Our own attributes.
const (
	keyUpstream = attribute.Key("upstrand.upstream")
	keyPeer     = attribute.Key("upstrand.peer")
	keyCause    = attribute.Key("upstrand.cause")
)
