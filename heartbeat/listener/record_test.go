package listener

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/upstrand/upstrand/registry"
)

func TestReadBeat(t *testing.T) {
	const value = `{"service":"orders","id":"a7","incarnation":7,"seq":9,"sent_at":"2026-11-30T12:00:00.5Z","scheme":"https",
		"ip":"[2001:DB8::1]","port":8443,"url":"/orders/","status":"draining","weight":3,"max_conns":10,"max_fails":0,"fail_timeout":"5s",
		"slow_start":"30s","zone":"b","version":"1.2","tags":["y","x"],"meta":{"k":"v"},
		"load":{"in_flight":2,"rps":1.5,"latency_ms":3},"resources":{"cpu":0.5,"memory":1024},"interval":"20s"}`
	rec, bad, kind := read(raw{offset: 42, key: []byte("orders/a7"), value: []byte(value)}, 1234)
	if bad != nil || kind != kindBeat {
		t.Fatalf("%s %+v", kind, bad)
	}
	want := registry.Record{Offset: 42, Sighting: &registry.Sighting{
		Service: "orders", ID: "a7", Incarnation: 7, Seq: 9,
		SentAt: time.Date(2026, 11, 30, 12, 0, 0, 5e8, time.UTC).UnixMicro(), ReceivedAt: 1234, Status: registry.StatusDraining,
		Attrs: registry.Attrs{
			Scheme: "https", IP: "2001:db8::1", Port: 8443, URL: "/orders/", Weight: 3, MaxConns: 10, MaxFails: 0,
			FailTimeout: 5 * time.Second, SlowStart: 30 * time.Second, Zone: "b", Version: "1.2", Tags: []string{"x", "y"},
			Meta: map[string]string{"k": "v"},
		},
		Load:     registry.Load{InFlight: 2, RPS: 1.5, LatencyMS: 3, CPU: 0.5, Memory: 1024},
		Interval: 20 * time.Second, StaleAfter: time.Minute,
	}}
	if d := cmp.Diff(want, rec); d != "" {
		t.Error(d)
	}
}

func TestReadBeatWithDefaults(t *testing.T) {
	rec, bad, _ := read(raw{value: []byte(`{"service":"orders","id":"a","ip":"10.0.0.1","port":80}`)}, 1)
	if bad != nil {
		t.Fatal(bad)
	}
	s := rec.Sighting
	if s.SentAt != 0 || s.Incarnation != 0 || s.Status != registry.StatusUp || s.Attrs.Weight != 1 || s.Attrs.Scheme != "http" ||
		s.Attrs.MaxFails != 1 || s.Attrs.FailTimeout != 10*time.Second || s.Interval != 10*time.Second || s.StaleAfter != 30*time.Second ||
		s.Report != nil {
		t.Errorf("%+v", s)
	}
}

func TestAgentsMetaIsTheirReport(t *testing.T) {
	rec, bad, _ := read(raw{value: []byte(`{"service":"upstrand-proxy","id":"p1","ip":"10.0.0.1","port":80,"meta":{"topology_version":"7","behind":"0"}}`)}, 1)
	if bad != nil {
		t.Fatal(bad)
	}
	if got := string(rec.Sighting.Report); got != `{"behind":"0","topology_version":"7"}` || rec.Sighting.Attrs.Meta != nil {
		t.Errorf("report %s, meta %v", got, rec.Sighting.Attrs.Meta)
	}
	rec, bad, _ = read(raw{value: []byte(`{"service":"upstrand-proxy","id":"p1","status":"leaving"}`)}, 1)
	if bad != nil {
		t.Fatal(bad)
	}
	if rec.Sighting.Report != nil || rec.Sighting.Status != registry.StatusLeaving || rec.Sighting.Attrs.IP != "" {
		t.Errorf("goodbye: %+v", rec.Sighting)
	}
}

func TestReadKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		r            raw
		kind, reason string
	}{
		"pulse":              {raw{key: []byte(pulseKey), value: []byte(`{"session":"ab","n":2,"elapsed_us":1000000}`)}, kindPulse, ""},
		"bad pulse":          {raw{key: []byte(pulseKey)}, kindBad, registry.RejectedPulse},
		"commit marker":      {raw{key: []byte{0, 0, 0, 1}, value: []byte{0, 0, 0, 0, 0, 3}}, kindControl, ""},
		"abort marker":       {raw{key: []byte{0, 0, 0, 0}, value: []byte{0, 0, 0, 0, 0, 3}}, kindControl, ""},
		"tombstone":          {raw{key: []byte("orders/a")}, kindBad, "empty"},
		"a beat posing":      {raw{key: []byte("orders/b"), value: []byte(`{"service":"orders","id":"a","ip":"10.0.0.1","port":80}`)}, kindBad, "key_mismatch"},
		"beat without a key": {raw{value: []byte(`{"service":"orders","id":"a","ip":"10.0.0.1","port":80}`)}, kindBeat, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec, bad, kind := read(tc.r, 1)
			reason := ""
			if bad != nil {
				reason = bad.Reason
			}
			if kind != tc.kind || reason != tc.reason || (rec.Pulse != nil) != (kind == kindPulse) || (rec.Sighting != nil) != (kind == kindBeat) {
				t.Errorf("kind %s, reason %q, record %+v", kind, reason, rec)
			}
		})
	}
}

func TestRejectedIsBoundedText(t *testing.T) {
	key, value := bytes.Repeat([]byte("\xff\x00é"), 1000), bytes.Repeat([]byte("x"), 1<<20)
	_, bad, _ := read(raw{offset: 5, key: key, value: value}, 99)
	if bad == nil || bad.Offset != 5 || bad.At != 99 {
		t.Fatalf("%+v", bad)
	}
	if len(bad.Key) > 255 || len(bad.Detail) > 1024 || len(bad.Value) != 2<<10 || cap(bad.Value) > 4<<10 {
		t.Errorf("key %d, detail %d, value %d of %d bytes", len(bad.Key), len(bad.Detail), len(bad.Value), cap(bad.Value))
	}
	for _, s := range []string{bad.Key, bad.Detail} {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Errorf("not text: %q", s)
		}
	}
}

// Whatever bytes come, read neither panics nor returns more or less than one thing.
func FuzzRead(f *testing.F) {
	for _, m := range badRecords() {
		if len(m.Value) < 1000 {
			f.Add(m.Key, m.Value)
		}
	}
	f.Add([]byte(pulseKey), []byte(`{"session":"ab","n":2,"elapsed_us":1000000}`))
	f.Add([]byte("orders/i1"), beatMessage(1, 1).Value)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		rec, bad, kind := read(raw{offset: 1, key: key, value: value}, 1)
		n := 0
		for _, set := range []bool{rec.Pulse != nil, rec.Sighting != nil, bad != nil, kind == kindControl} {
			if set {
				n++
			}
		}
		if n != 1 || bad != nil && (bad.Reason == registry.RejectedPanic || bad.Reason == "" || len(bad.Reason) > 32) {
			t.Errorf("kind %s, record %+v, bad %+v", kind, rec, bad)
		}
		if rec.Pulse != nil && (rec.Pulse.N < 1 || rec.Pulse.Elapsed < 0 || len(rec.Pulse.Session) > 64) {
			t.Errorf("pulse %+v", rec.Pulse)
		}
		if s := rec.Sighting; s != nil && s.Report != nil && !json.Valid(s.Report) {
			t.Errorf("report %s", s.Report)
		}
	})
}
