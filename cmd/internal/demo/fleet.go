package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/heartbeat"
)

// Fleet is all instances of all services.
type Fleet struct {
	instances []*Instance
}

// perService is how many instances each service has; they stand in the zones by turns.
const perService = 3

var zones = []string{"a", "b"}

// NewFleet returns the fleet, stopped.
func NewFleet(services []Service, beats Beats, log zerolog.Logger) *Fleet {
	f := &Fleet{}
	for _, s := range services {
		for n := range perService {
			f.instances = append(f.instances, &Instance{
				Service: s, ID: fmt.Sprintf("%s-%d", s.Name, n+1), Zone: zones[n%len(zones)], weight: 1, beats: beats, log: log,
			})
		}
	}
	return f
}

// Run starts every instance, and when ctx ends says goodbye for all of them at once.
func (f *Fleet) Run(ctx context.Context) error {
	var errs []error
	for _, i := range f.instances {
		errs = append(errs, i.Start())
	}
	if err := errors.Join(errs...); err != nil {
		f.stop()
		return err
	}
	<-ctx.Done()
	f.stop()
	return nil
}

func (f *Fleet) stop() {
	var all sync.WaitGroup
	for _, i := range f.instances {
		all.Go(func() { i.Stop(context.Background(), 0) })
	}
	all.Wait()
}

// lingers is how long a stopped instance still serves: what a proxy needs to learn of a goodbye.
const lingers = time.Second

// Control lists the instances and stops, kills, starts and weighs them, one or a whole zone at a time.
func (f *Fleet) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		for _, i := range f.instances {
			fmt.Fprintln(w, i.Describe())
		}
	})
	mux.HandleFunc("/{id}/{action}", onlyPost)
	mux.HandleFunc("/{id}/{action}/{value}", onlyPost)
	mux.HandleFunc("POST /{id}/{action}", f.act)
	mux.HandleFunc("POST /{id}/{action}/{value}", f.act)
	mux.HandleFunc("POST /zone/{zone}/{action}", f.actInZone)
	return mux
}

// onlyPost tells a browser and a curl without -X what would have worked.
func onlyPost(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", http.MethodPost)
	http.Error(w, fmt.Sprintf("%s changes nothing here: curl -s -X POST http://%s%s", r.Method, r.Host, r.URL.Path), http.StatusMethodNotAllowed)
}

func (f *Fleet) act(w http.ResponseWriter, r *http.Request) {
	i := f.find(r.PathValue("id"))
	if i == nil {
		http.Error(w, "no such instance; GET / lists them", http.StatusNotFound)
		return
	}
	if err := i.do(r.Context(), r.PathValue("action"), r.PathValue("value")); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, i.Describe())
}

// actInZone does the same to all instances of a zone, side by side.
func (f *Fleet) actInZone(w http.ResponseWriter, r *http.Request) {
	zone, action := r.PathValue("zone"), r.PathValue("action")
	if !slices.Contains(zones, zone) {
		http.Error(w, fmt.Sprintf("unknown zone %q: %s", zone, strings.Join(zones, " or ")), http.StatusNotFound)
		return
	}
	errs := make([]error, len(f.instances))
	var all sync.WaitGroup
	for n, i := range f.instances {
		if i.Zone == zone {
			all.Go(func() { errs[n] = i.do(r.Context(), action, "") })
		}
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, i := range f.instances {
		if i.Zone == zone {
			fmt.Fprintln(w, i.Describe())
		}
	}
}

func (f *Fleet) find(id string) *Instance {
	for _, i := range f.instances {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// do carries out one order of the control port.
func (i *Instance) do(ctx context.Context, action, value string) error {
	if value != "" && action != "weight" {
		return fmt.Errorf("%s takes no value, given %q", action, value)
	}
	switch action {
	case "start":
		return i.Start()
	case "stop":
		i.Stop(ctx, lingers)
		return nil
	case "kill":
		i.Kill()
		return nil
	case "weight":
		weight, err := strconv.Atoi(value)
		if err != nil || weight < 1 || weight > heartbeat.MaxWeight {
			return fmt.Errorf("weight %q: allowed is a whole number from 1 to %d", value, heartbeat.MaxWeight)
		}
		return i.SetWeight(weight)
	}
	return fmt.Errorf("unknown action %q: start, stop, kill or weight/N", action)
}
