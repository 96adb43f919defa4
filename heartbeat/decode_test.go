package heartbeat

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeRefuses(t *testing.T) {
	for _, c := range badRecords {
		t.Run(c.name, func(t *testing.T) {
			b, err := Decode([]byte(c.record))
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Decode = %+v, %v; want an *InvalidError", b, err)
			}
			var got []Reason
			for _, p := range invalid.Problems {
				got = append(got, p.Reason)
				if p.Allowed == "" || p.Message == "" {
					t.Errorf("problem %+v does not say what is wrong or what is allowed", p)
				}
			}
			if !slices.Equal(got, c.reasons) || invalid.Reason != got[0] {
				t.Errorf("reason %s, problems %v, want %v\n%v", invalid.Reason, got, c.reasons, err)
			}
			if len(err.Error()) > 4096 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// Every reason that Decode can give is given by some record above, and fits the registry's column.
func TestReasonsAreAllReached(t *testing.T) {
	reached := map[Reason]bool{KeyMismatch: true} // TestDecodeRecord
	for _, c := range badRecords {
		for _, r := range c.reasons {
			reached[r] = true
		}
	}
	for _, r := range Reasons() {
		if !reached[r] || len(r) > 32 {
			t.Errorf("reason %s: reached %v, %d bytes", r, reached[r], len(r))
		}
		delete(reached, r)
	}
	if len(reached) > 0 {
		t.Errorf("not in Reasons: %v", reached)
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	_, err := Decode([]byte("{" + entries(1000, "unknown", "1") + "}"))
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != maxProblems || invalid.Omitted != 1000+4-maxProblems {
		t.Fatalf("got %v", err)
	}
	if len(err.Error()) > 8192 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestDecode(t *testing.T) {
	for _, c := range goodRecords {
		t.Run(c.name, func(t *testing.T) {
			value := []byte(c.record)
			b, err := Decode(value)
			if err != nil {
				t.Fatal(err)
			}
			clear(value) // the beat must not lean on the caller's buffer
			if diff := cmp.Diff(c.want, b); diff != "" {
				t.Errorf("beat differs (-want +got):\n%s", diff)
			}
		})
	}
}

// encoding/json reads what Encode writes to the same beat: the field names of the type are those of Decode.
func TestEncodeAgreesWithJSON(t *testing.T) {
	value, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	var b Beat
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), b); diff != "" {
		t.Errorf("beat differs (-want +got):\n%s", diff)
	}
	if !bytes.Contains(value, []byte("<&>")) {
		t.Errorf("escaped for HTML: %s", value)
	}
}

func TestCanonicalLeavesTheCallersBeatAlone(t *testing.T) {
	tags := []string{"b", "a"}
	b := Beat{Service: "o", ID: "1", IP: "[::1]", Port: 1, Tags: tags, SentAt: time.Now()}
	c, err := b.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if tags[0] != "b" || b.IP != "[::1]" {
		t.Errorf("the given beat changed: %+v", b)
	}
	if c.IP != "::1" || !slices.Equal(c.Tags, []string{"a", "b"}) || !c.SentAt.Equal(b.SentAt) || c.SentAt.Location() != time.UTC {
		t.Errorf("canonical form: %+v", c)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, b := range map[string]Beat{
		"nothing":   {},
		"weight":    {Service: "o", ID: "1", IP: "::1", Port: 1, Weight: -1},
		"NaN":       {Service: "o", ID: "1", IP: "::1", Port: 1, Load: &Load{RPS: nan()}},
		"not UTF-8": {Service: "o", ID: "1", IP: "::1", Port: 1, Meta: map[string]string{"a": "\xff"}},
	} {
		value, err := b.Encode()
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: Encode = %q, %v", name, value, err)
		}
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestDecodeRecord(t *testing.T) {
	for key, want := range map[string]bool{
		"": true, "orders/a7": true, "orders/a8": false, "orders": false, "order/a7": false, "orders/a7/": false, "ordersxa7": false,
	} {
		_, err := DecodeRecord([]byte(key), []byte(with()))
		var invalid *InvalidError
		if want != (err == nil) || !want && (!errors.As(err, &invalid) || invalid.Reason != KeyMismatch) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if key := string(full().Key()); key != "orders/a7" {
		t.Errorf("Key = %q", key)
	}
}

func TestStaleLimit(t *testing.T) {
	for _, c := range []struct{ interval, staleAfter, want time.Duration }{
		{0, 0, 30 * time.Second},
		{10 * time.Second, 0, 30 * time.Second},
		{100 * time.Millisecond, 0, 3 * time.Second},
		{time.Second, 0, 3 * time.Second},
		{2 * time.Minute, 0, 5 * time.Minute},
		{time.Second, time.Second * 2, 2 * time.Second},
		{4 * time.Minute, 20 * time.Minute, 20 * time.Minute},
	} {
		if got := (Beat{Interval: Duration(c.interval), StaleAfter: Duration(c.staleAfter)}).StaleLimit(); got != c.want {
			t.Errorf("%v, %v: %v, want %v", c.interval, c.staleAfter, got, c.want)
		}
	}
}

func TestFailLimits(t *testing.T) {
	if n, d := (Beat{}).FailLimits(); n != 1 || d != 10*time.Second {
		t.Errorf("defaults: %d, %v", n, d)
	}
	if n, d := full().FailLimits(); n != 0 || d != 20*time.Second {
		t.Errorf("given: %d, %v", n, d)
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Second: "10s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", time.Hour + time.Minute: "1h1m",
		time.Hour + time.Second: "1h0m1s", 100 * time.Millisecond: "100ms", 600 * time.Second: "10m", 10 * time.Hour: "10h",
	} {
		if got := Duration(d).String(); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != d {
			t.Errorf("%q is read as %v, %v", want, back, err)
		}
	}
}

func TestIsAgent(t *testing.T) {
	if !IsAgent("upstrand-proxy") || IsAgent("upstrand") || IsAgent("orders") {
		t.Error("agents are the services whose name begins with upstrand-")
	}
}

// What Decode takes, Encode writes in a form that Decode reads back to the same beat, and that form stays.
func FuzzDecode(f *testing.F) {
	for _, c := range goodRecords {
		f.Add([]byte(c.record))
	}
	for _, c := range badRecords {
		if len(c.record) < 1000 {
			f.Add([]byte(c.record))
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		b, err := Decode(value)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 || invalid.Reason != invalid.Problems[0].Reason || err.Error() == "" {
				t.Fatalf("error without reason: %#v", err)
			}
			return
		}
		if !json.Valid(value) {
			t.Fatalf("accepted what is no JSON: %q", value)
		}
		again, err := b.Encode()
		if err != nil {
			t.Fatalf("can't encode what was decoded: %v", err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("can't decode %s: %v", again, err)
		}
		if diff := cmp.Diff(b, back); diff != "" {
			t.Fatalf("decode, encode, decode differ:\n%s", diff)
		}
		if third, err := back.Encode(); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("two forms of one beat:\n%s\n%s (%v)", again, third, err)
		}
		checkBounds(t, b)
	})
}

// checkBounds looks at what others rely on: column widths, dialable addresses, ordering.
func checkBounds(t *testing.T, b Beat) {
	t.Helper()
	if len(b.Service) > 64 || len(b.ID) > 64 || len(b.URL) > 255 || len(b.Zone) > 64 || len(b.Version) > 64 || b.Weight < 1 {
		t.Errorf("beyond the limits: %+v", b)
	}
	if !b.HasAddress() && b.Status != StatusLeaving {
		t.Errorf("no address: %+v", b)
	}
	if limit := b.StaleLimit(); limit < time.Second || limit*2 < time.Duration(b.Interval)*3 {
		t.Errorf("stale limit %v of an interval of %v", limit, b.Interval)
	}
	if meta, _ := json.Marshal(b.Meta); len(meta) > 65535 {
		t.Errorf("meta takes %d bytes", len(meta))
	}
}

// typical is a beat as a Go sender makes it, about 350 bytes.
const typical = `{"service":"orders","id":"orders-5d4f7c9b8-x2x7k","incarnation":1764417600000,"seq":86400,"sent_at":"2026-11-29T12:00:00.123456Z",` +
	`"scheme":"http","ip":"10.42.17.203","port":8080,"url":"/orders/","status":"up","weight":10,"zone":"eu-1a","version":"1.42.0","tags":["canary"],` +
	`"load":{"in_flight":12,"rps":85.5,"latency_ms":12.25},"resources":{"cpu":0.42,"memory":123456789},"interval":"10s"}`

func BenchmarkDecode(b *testing.B) {
	value := []byte(typical)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(value); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeJSON is what encoding/json takes for the same text without any of the checks.
func BenchmarkDecodeJSON(b *testing.B) {
	value := []byte(typical)
	b.ReportAllocs()
	for b.Loop() {
		var beat Beat
		if err := json.Unmarshal(value, &beat); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	beat, err := Decode([]byte(typical))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := beat.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}
