package rig

import (
	"context"
	"errors"

	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// API is a client of the world's registry.
func (w *World) API() (*client.Client, error) {
	if w.registry == nil {
		return nil, errors.New("rig: this world has no registry role")
	}
	return client.New(client.Config{Base: "http://" + w.registry.Traffic, HTTP: adminClient})
}

// InstanceNow is an instance as the registry shows it.
func (w *World) InstanceNow(ctx context.Context, service, id string) (wire.Instance, error) {
	api, err := w.API()
	if err != nil {
		return wire.Instance{}, err
	}
	return api.Instance(ctx, service, id)
}

// Livenesses counts the instances of a service by liveness; an empty service means all that are no agents.
func (w *World) Livenesses(ctx context.Context, service string) (map[string]int, error) {
	api, err := w.API()
	if err != nil {
		return nil, err
	}
	q := client.InstanceQuery{}
	if service != "" {
		q.Services = []string{service}
	}
	counts := map[string]int{}
	for i, err := range api.AllInstances(ctx, q) {
		if err != nil {
			return nil, err
		}
		counts[i.Liveness]++
	}
	return counts, nil
}

// EventKinds counts the registry's events with a number above after, by kind.
func (w *World) EventKinds(ctx context.Context, after int64) (map[string]int, int64, error) {
	api, err := w.API()
	if err != nil {
		return nil, 0, err
	}
	counts := map[string]int{}
	for {
		list, err := api.Events(ctx, client.EventQuery{After: &after})
		if err != nil {
			return nil, 0, err
		}
		for _, e := range list.Events {
			counts[e.Kind]++
		}
		if list.LastSeq == after {
			return counts, after, nil
		}
		after = list.LastSeq
	}
}
