package topology

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	for _, tc := range []struct {
		text        string
		ms, seconds time.Duration // -1: refused
	}{
		{"10", 10 * time.Second, 10 * time.Second},
		{"10s", 10 * time.Second, 10 * time.Second},
		{"500ms", 500 * time.Millisecond, -1},
		{"1s500ms", 1500 * time.Millisecond, -1},
		{"1m30s", 90 * time.Second, 90 * time.Second},
		{"1h 30m", 90 * time.Minute, 90 * time.Minute},
		{"1m30", 90 * time.Second, 90 * time.Second},
		{"2d", 48 * time.Hour, 48 * time.Hour},
		{"1w", 7 * day, 7 * day},
		{"1M", -1, 30 * day},
		{"1y", -1, 365 * day},
		{"25d", -1, 25 * day}, // more than 2^31-1 ms
		{"0", 0, 0},
		{"", -1, -1}, {"-1", -1, -1}, {"s", -1, -1}, {"1s1m", -1, -1}, {"1m1m", -1, -1}, {"1x", -1, -1}, {" 1s", -1, -1}, {"1s ", -1, -1},
		{"1.5s", -1, -1}, {"99999999999999999999s", -1, -1}, {"70y", -1, -1},
	} {
		check := func(name string, parse func(string) (time.Duration, error), want time.Duration) {
			got, err := parse(tc.text)
			if (err != nil) != (want < 0) || (err == nil && got != want) {
				t.Errorf("%s(%q) = %s, %v; want %s", name, tc.text, got, err, want)
			}
		}
		check("ParseTime", ParseTime, tc.ms)
		check("ParseSeconds", ParseSeconds, tc.seconds)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "512": 512, "64k": 64 << 10, "64K": 64 << 10, "1m": 1 << 20, "2g": 2 << 30, "2G": 2 << 30,
		"": -1, "k": -1, "1kb": -1, "-1": -1, "1t": -1, "99999999999g": -1, "1.5m": -1,
	} {
		got, err := ParseSize(text)
		if (err != nil) != (want < 0) || (err == nil && got != want) {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "2147483647": 1<<31 - 1, "0": -1, "2147483648": -1, "1s": -1, "": -1, "-1": -1, "+1": -1} {
		got, err := ParseNumber(text, 1)
		if (err != nil) != (want < 0) || (err == nil && got != want) {
			t.Errorf("ParseNumber(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}
