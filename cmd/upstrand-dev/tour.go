package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/demo"
)

// tour waits until the demo services are served and then says what runs where and what to try.
type tour struct {
	proxy, registry, admin, broker, demo string

	services []demo.Service
	interval time.Duration
	data     string
	zone     string // of the proxy; empty: none
	out      io.Writer
	ready    func() error
}

// Within patience the text is printed whether everything is up or not.
const (
	patience = 8 * time.Second
	lookEach = 50 * time.Millisecond
)

func (t tour) run(ctx context.Context) error {
	err := t.await(ctx)
	if ctx.Err() == nil {
		t.print(err)
	}
	<-ctx.Done()
	return nil
}

// await is nil once every service answers through the proxy.
func (t tour) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		err := t.ready()
		for _, s := range t.services {
			if err == nil {
				err = answers(ctx, client, "http://"+t.proxy+s.URL())
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookEach):
		}
	}
}

var errNotRouted = errors.New("not routed yet")

// answers asks once. A demo service that fails on purpose says 500; what else is not 200 is the proxy's own, such as 502
// for the addresses of a state that was kept.
func answers(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusInternalServerError {
		return fmt.Errorf("%w: %s gives %s", errNotRouted, url, res.Status)
	}
	return nil
}

func (t tour) print(err error) {
	w := t.out
	if err != nil {
		fmt.Fprintf(w, "\nNot everything is up yet: %v\n", err)
	}
	fmt.Fprintf(w, "\nUpstrand runs, all of it in this process:\n")
	for _, line := range [][2]string{
		{"proxy", "http://" + t.proxy}, {"registry", "http://" + t.registry}, {"admin", "http://" + t.admin},
		{"broker", t.broker + " (Kafka protocol)"}, {"demo", "http://" + t.demo},
	} {
		fmt.Fprintf(w, "  %-9s %s\n", line[0], line[1])
	}
	if t.data != "" {
		fmt.Fprintf(w, "  %-9s %s\n", "state", t.data)
	}
	fmt.Fprintf(w, "\nA request to each service:\n")
	for _, s := range t.services {
		fmt.Fprintf(w, "  curl -s http://%s%-9s # %s\n", t.proxy, s.URL(), s.What)
	}
	fmt.Fprintf(w, "\nWhat the registry knows:\n  curl -s http://%s/v1/services\n  curl -s http://%s/v1/instances/whoami/whoami-1\n  curl -s http://%s/v1/topology\n",
		t.registry, t.registry, t.registry)
	fmt.Fprintf(w, "\nStop an instance, watch the traffic move, start it again:\n")
	fmt.Fprintf(w, "  curl -s -X POST http://%s/whoami-1/stop      # says goodbye: out at once\n", t.demo)
	fmt.Fprintf(w, "  for i in 1 2 3 4 5 6; do curl -s http://%s/whoami/; done\n", t.proxy)
	fmt.Fprintf(w, "  curl -s -X POST http://%s/whoami-1/start\n", t.demo)
	fmt.Fprintf(w, "  curl -s -X POST http://%s/whoami-2/kill      # as kill -9: found after %v without a beat\n", t.demo, max(3*t.interval, 3*time.Second))
	fmt.Fprintf(w, "  curl -s -X POST http://%s/whoami-3/weight/5  # five times the traffic\n", t.demo)
	if t.zone != "" {
		fmt.Fprintf(w, "\nThe proxy stands in zone %s and goes elsewhere when nobody there answers. Kill the zone, look, bring it back:\n", t.zone)
		fmt.Fprintf(w, "  curl -s -X POST http://%s/zone/%s/kill\n", t.demo, t.zone)
		fmt.Fprintf(w, "  curl -s 'http://%s/debug/upstrands?name=%s'  # as upstrand-dev upstrand show %s --admin %s\n", t.admin, t.services[0].Name, t.services[0].Name, t.admin)
		fmt.Fprintf(w, "  curl -s -X POST http://%s/zone/%s/start\n", t.demo, t.zone)
	}
	fmt.Fprintf(w, "\nCtrl-C ends it.\n\n")
}
