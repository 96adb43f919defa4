package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// poster delivers spans by OTLP over HTTP, as protobuf. It is the official exporter's client: their own one for HTTP
// brings gRPC along, which would double what a proxy weighs.
type poster struct {
	url     string
	header  http.Header
	timeout time.Duration
	client  *http.Client
}

// tries are how often one batch is sent when the collector can't take it at the moment.
const tries = 4

func newPoster(c Config) (*poster, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("telemetry: endpoint %q: want a URL such as http://localhost:4318/v1/traces", c.Endpoint)
	}
	p := &poster{url: c.Endpoint, header: http.Header{}, timeout: c.Timeout, client: c.Client}
	for name, value := range c.Header {
		p.header.Set(name, value)
	}
	p.header.Set("Content-Type", "application/x-protobuf")
	p.header.Set("Content-Encoding", "gzip")
	if p.timeout <= 0 {
		p.timeout = 10 * time.Second
	}
	if p.client == nil {
		p.client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	return p, nil
}

func (p *poster) Start(context.Context) error { return nil }

func (p *poster) Stop(context.Context) error {
	p.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends a batch. The wire form of an ExportTraceServiceRequest is that of TracesData.
func (p *poster) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if _, err := z.Write(plain); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	wait := time.Second
	for n := 1; ; n++ {
		after, err := p.post(ctx, body.Bytes())
		if err == nil || n == tries || !errors.Is(err, errLater) {
			return err
		}
		if err := pause(ctx, max(wait, after)); err != nil {
			return err
		}
		wait *= 2
	}
}

// errLater is wrapped by errors after which the same batch may be taken.
var errLater = errors.New("not now")

// longestWait bounds what a collector may ask for.
const longestWait = 30 * time.Second

// post sends a batch once. After says how long the collector wants to be left alone.
func (p *poster) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = p.header
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%w: deliver spans: %w", errLater, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			after = min(time.Duration(s)*time.Second, longestWait)
		}
		return after, fmt.Errorf("%w: deliver spans to %s: %s", errLater, p.url, resp.Status)
	}
	return 0, fmt.Errorf("deliver spans to %s: %s", p.url, resp.Status)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
