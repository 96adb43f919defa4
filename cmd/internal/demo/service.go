// Package demo holds small services to balance: one answers who it is, one is slow, one fails now and then. They beat
// through package heartbeat like anybody's service; nothing in the system knows that they are demos.
//
// It is for upstrand-dev; the production binary does not link it.
package demo

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// Service is a service of a few alike instances.
type Service struct {
	Name     string
	What     string        // for people
	Latency  time.Duration // that each answer takes
	FailRate float64       // share of the requests that are answered with 500, 0 to 1
}

// URL is the path that the service claims.
func (s Service) URL() string { return "/" + s.Name + "/" }

// Services are the three of the demo.
func Services() []Service {
	return []Service{
		{Name: "whoami", What: "answers who it is"},
		{Name: "slow", What: "takes 300 ms", Latency: 300 * time.Millisecond},
		{Name: "flaky", What: "fails one request in five", FailRate: 0.2},
	}
}

// Handler answers every request with who; /healthz at once and always.
func (s Service) Handler(who string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(s.Latency):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if rand.Float64() < s.FailRate {
			http.Error(w, who+" failed, as it does now and then", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s answers %s %s\n", who, r.Method, r.URL.Path)
	})
	return mux
}
