package await

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func TestWaitsSaysWhyAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		tries := 0
		err := For(t.Context(), zerolog.New(&log), "the database", func(context.Context) error {
			switch tries++; {
			case tries < 4:
				return errors.New("connection refused")
			case tries < 6:
				return errors.New("schema is not migrated")
			}
			return nil
		})
		if err != nil || tries != 6 {
			t.Fatalf("error %v after %d tries", err, tries)
		}
		if n := strings.Count(log.String(), `"waiting"`); n != 2 {
			t.Errorf("said %d times that it waits, want once for each reason:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "schema is not migrated") || !strings.Contains(log.String(), "going on") {
			t.Error(log.String())
		}
	})
}

func TestALastingReasonIsSaidAgainNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		err := For(ctx, zerolog.New(&log), "kafka", func(context.Context) error { return errors.New("refused") })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if n := strings.Count(log.String(), `"waiting"`); n < 3 || n > 4 {
			t.Errorf("said %d times in 100 s", n)
		}
	})
}

func TestPermanentEndsTheWait(t *testing.T) {
	cause := errors.New("two partitions")
	err := For(t.Context(), zerolog.Nop(), "topic", func(context.Context) error { return Permanent(cause) })
	if !errors.Is(err, cause) || err.Error() != "topic: two partitions" {
		t.Error(err)
	}
}

func TestAnObserverKnowsThePresentReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		ctx := Observe(t.Context(), func(waitsFor string) { told = append(told, waitsFor) })
		tries := 0
		if err := For(ctx, zerolog.Nop(), "the database", func(context.Context) error {
			if tries++; tries == 1 {
				return errors.New("run migrate")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(told, "|"); got != "waits for the database: run migrate|" {
			t.Errorf("told %q", got)
		}
	})
}
