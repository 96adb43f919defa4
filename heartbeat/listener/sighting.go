package listener

import (
	"encoding/json"
	"time"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
)

// sighting turns a beat in canonical form into what the registry takes. receivedAt is Unix µs on the listener's clock.
//
// What an agent (a service named upstrand-…) carries as meta is its report: it changes with every version, so it goes
// to Report, which raises no revision, and Attrs.Meta stays empty. A goodbye may say nothing of the address: then
// Attrs has no IP and no port, and the registry keeps what it knows.
func sighting(b *heartbeat.Beat, receivedAt int64) *registry.Sighting {
	maxFails, failTimeout := b.FailLimits()
	s := &registry.Sighting{
		Service:     b.Service,
		ID:          b.ID,
		Incarnation: b.Incarnation,
		Seq:         b.Seq,
		ReceivedAt:  receivedAt,
		Status:      registry.Status(b.Status),
		Attrs: registry.Attrs{
			Scheme:      b.Scheme,
			IP:          b.IP,
			Port:        b.Port,
			URL:         b.URL,
			Weight:      b.Weight,
			MaxConns:    b.MaxConns,
			MaxFails:    maxFails,
			FailTimeout: failTimeout,
			SlowStart:   time.Duration(b.SlowStart),
			Zone:        b.Zone,
			Version:     b.Version,
			Tags:        b.Tags,
			Meta:        b.Meta,
		},
		Interval:   time.Duration(b.Interval),
		StaleAfter: b.StaleLimit(),
	}
	if !b.SentAt.IsZero() {
		s.SentAt = b.SentAt.UnixMicro()
	}
	if b.Load != nil {
		s.Load.InFlight, s.Load.RPS, s.Load.LatencyMS = b.Load.InFlight, b.Load.RPS, b.Load.LatencyMS
	}
	if b.Resources != nil {
		s.Load.CPU, s.Load.Memory = b.Resources.CPU, b.Resources.Memory
	}
	if heartbeat.IsAgent(b.Service) {
		s.Report, s.Attrs.Meta = report(b.Meta), nil
	}
	return s
}

// report is meta as a JSON object with sorted keys, or nil when the beat carries none (a goodbye need not).
func report(meta map[string]string) json.RawMessage {
	if len(meta) == 0 {
		return nil
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil // a map of strings always encodes
	}
	return raw
}
