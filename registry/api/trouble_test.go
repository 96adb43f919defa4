package api

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// A batch whose beats all failed for one cause gives one line with the cause once, and one line in a while.
func TestBeatsThatCouldNotBeWrittenGiveOneLine(t *testing.T) {
	var log bytes.Buffer
	dial := errors.New("dial tcp 127.0.0.1:9092: connect: connection refused")
	h := newAPI(t, brokenStore{}, func(c *Config) {
		c.Logger = zerolog.New(&log)
		c.Publisher = &topic{fail: func(Message) error { return errors.Join(dial, fmt.Errorf("%w", dial)) }}
	})
	for range 5 {
		if w := call(t, h, post("["+beat("a1")+","+beat("a2")+"]", "application/json")); w.Code != 503 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if strings.Count(log.String(), "\n") != 1 || strings.Count(log.String(), "connection refused") != 1 {
		t.Errorf("logged:\n%s", &log)
	}
}

func TestAFailureThatGoesOnIsToldAgain(t *testing.T) {
	var tr trouble
	now := time.Now()
	for _, c := range []struct {
		after time.Duration
		quiet int
		tell  bool
	}{{0, 0, true}, {time.Second, 0, false}, {9 * time.Second, 0, false}, {10 * time.Second, 2, true}, {11 * time.Second, 0, false}} {
		if quiet, tell := tr.due(now.Add(c.after)); quiet != c.quiet || tell != c.tell {
			t.Errorf("after %v: %d %v", c.after, quiet, tell)
		}
	}
}
