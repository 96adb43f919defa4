package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/registry/wire"
)

// metrics are the API's own; nil collectors are never used, so that a handler without a Registerer counts as well.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	beats    *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "upstrand_api_requests_total", Help: "Requests answered, by route (none: no such path), method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "upstrand_api_request_seconds", Help: "Time to answer, by route; of events it includes waiting for them.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 40},
		}, []string{"route"}),
		beats: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "upstrand_api_beats_total", Help: "Beats posted, by what became of them.",
		}, []string{"result"}),
	}
	for _, result := range []string{wire.BeatAccepted, wire.BeatInvalid, wire.BeatFailed} {
		m.beats.WithLabelValues(result)
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.beats} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registry api: metrics: %w", err)
		}
	}
	return m, nil
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// serve is around everything: it counts, and turns a panic into an answer.
func (a *api) serve(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		rec.Header().Set("Cache-Control", "no-store")
		defer a.finish(rec, r, start)
		if err := crossOrigin.Check(r); err != nil {
			newProblem(http.StatusForbidden, "a page of another site can't post here").write(rec)
			return
		}
		next.ServeHTTP(rec, r)
	})
}

// finish recovers, logs and counts. A panic after the answer began (huma's way to say that writing it failed, which
// it does when the client is gone) must break the connection: the client would take what it has for the whole.
func (a *api) finish(rec *recorder, r *http.Request, start time.Time) {
	failure := recover()
	if failure != nil && rec.status == 0 {
		a.cfg.Logger.Error().Str("path", r.URL.Path).Interface("panic", failure).Bytes("stack", debug.Stack()).Msg("request failed")
		newProblem(http.StatusInternalServerError, "this request failed inside the registry; its log says why").write(rec)
	}
	route := routeOf(r)
	a.metrics.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(rec.status)).Inc()
	a.metrics.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
	if failure != nil && rec.status != http.StatusInternalServerError {
		a.cfg.Logger.Debug().Str("path", r.URL.Path).Interface("error", failure).Msg("answer broken off")
		panic(http.ErrAbortHandler)
	}
}

// routeOf is the pattern's path, a bounded set.
func routeOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	if path == "" {
		return "none"
	}
	return path
}

// methods are those that some route has.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}

func methodLabel(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

// fallback answers what no route matches: a known path with another method, or no path of ours.
func fallback(mux *http.ServeMux, document *huma.OpenAPI) http.Handler {
	var routes []string
	for path := range document.Paths {
		routes = append(routes, path)
	}
	slices.Sort(routes)
	list := strings.Join(routes, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed := allowedMethods(mux, r); len(allowed) > 0 {
			allow := strings.Join(allowed, ", ")
			newProblem(http.StatusMethodNotAllowed, r.Method+" is no method of "+r.URL.Path,
				wire.FieldError{Location: "method", Message: "is not allowed", Value: shown(r.Method), Allowed: allow},
			).header("Allow", allow).write(w)
			return
		}
		newProblem(http.StatusNotFound, "there is nothing at "+shown(r.URL.Path)+"; GET /openapi.json describes the API",
			wire.FieldError{Location: "path", Message: "is no path of the API", Value: shown(r.URL.Path), Allowed: list},
		).write(w)
	})
}

func allowedMethods(mux *http.ServeMux, r *http.Request) []string {
	var allowed []string
	for _, method := range methods {
		other := r.Clone(context.WithoutCancel(r.Context()))
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" && pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	return allowed
}
