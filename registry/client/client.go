// Package client reads the registry's HTTP API, declares topology through it, and sends beats through it for programs that
// can't speak Kafka.
//
// It needs the standard library alone. It is not how a Go service should beat (package heartbeat writes to Kafka
// itself and does not depend on the registry being up), and it caches and retries nothing.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/upstrand/upstrand/registry/wire"
)

// DefaultTimeout bounds one call, the reading of its answer included; what a long poll waits comes on top.
const DefaultTimeout = 15 * time.Second

// maxAnswer bounds the answer of one call.
const maxAnswer = 256 << 20

// Config says where the registry is.
type Config struct {
	// Base is the registry's URL, such as http://127.0.0.1:8090; a path in front of /v1 may follow. Required.
	Base string
	// HTTP makes the calls; nil: a client of its own. It must not have a Timeout below what long polls wait.
	HTTP *http.Client
	// Timeout bounds one call; 0: DefaultTimeout.
	Timeout time.Duration
}

// Client calls one registry. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	http    *http.Client
	timeout time.Duration
}

// Error is an error answer of the registry.
type Error struct {
	Method, URL string
	Status      int
	Problem     *wire.Problem // nil when the answer was no problem+json: something else listens there, or is in between
	Body        string        // then the beginning of the answer
}

func (e *Error) Error() string {
	if e.Problem != nil {
		return fmt.Sprintf("registry: %s (%d)", e.Problem.Error(), e.Status)
	}
	return fmt.Sprintf("registry: %s %s answered %d %s, and not as the registry does: %.200q",
		e.Method, e.URL, e.Status, http.StatusText(e.Status), e.Body)
}

// IsNotFound reports whether err says that the registry knows no such thing.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound && e.Problem != nil
}

// IsConflict reports whether err says that the declared topology is at another revision than the expected one.
func IsConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict && e.Problem != nil
}

// New checks the configuration. It calls nothing.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.Base)
	if err != nil {
		return nil, fmt.Errorf("registry url: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("registry url %q: want http://host:port or https://host:port", cfg.Base)
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("registry url %q: has a query or fragment", cfg.Base)
	}
	c := &Client{base: base, http: cfg.HTTP, timeout: cfg.Timeout}
	if c.http == nil {
		c.http = &http.Client{}
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	return c, nil
}

// get reads path, whose elements are escaped here. The server may take wait longer to answer.
func get[T any](ctx context.Context, c *Client, path []string, query url.Values, wait time.Duration) (T, error) {
	var out T
	err := c.do(ctx, http.MethodGet, c.url(path, query), "", nil, wait, &out)
	return out, err
}

func (c *Client) url(path []string, query url.Values) string {
	escaped := make([]string, len(path))
	for i, p := range path {
		escaped[i] = url.PathEscape(p)
	}
	u := strings.TrimSuffix(c.base.String(), "/") + "/v1/" + strings.Join(escaped, "/")
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	return u
}

func (c *Client) do(ctx context.Context, method, u, contentType string, body []byte, wait time.Duration, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	req.Header.Set("Accept", "application/json, "+wire.ProblemType)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("registry: %s %s: read the answer: %w", method, u, err)
	}
	if len(answer) > maxAnswer {
		return fmt.Errorf("registry: %s %s: the answer is above %d bytes", method, u, maxAnswer)
	}
	return decode(res, method, u, answer, out)
}

func decode(res *http.Response, method, u string, answer []byte, out any) error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode/100 == 2 && media == "application/json" {
		if err := json.Unmarshal(answer, out); err != nil {
			return fmt.Errorf("registry: %s %s: %w", method, u, err)
		}
		return nil
	}
	failed := &Error{Method: method, URL: u, Status: res.StatusCode, Body: string(answer[:min(len(answer), 1024)])}
	if media == wire.ProblemType {
		var p wire.Problem
		if err := json.Unmarshal(answer, &p); err == nil && p.Status != 0 {
			failed.Problem = &p
		}
	}
	return failed
}
