// Package await waits at a role's start for what the role can't work without: the database, its schema, a topic. Roles
// may start in any order, so absence is no failure but something to say and to try again.
//
// It is not for work in progress: a running role has its own way of going on without Kafka or the database.
package await

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"
)

// The pause between two tries begins at first and grows to longest, with jitter. A lasting failure is said again at most
// every remind.
const (
	first   = 200 * time.Millisecond
	longest = 3 * time.Second
	remind  = 30 * time.Second
	attempt = 10 * time.Second // limit of one try
)

// Permanent marks an error that waiting does not mend; For returns it at once.
func Permanent(err error) error { return &permanent{err} }

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// Observe makes For tell observer, in words, what it waits for and why, each time that it tries in vain; and the empty text
// once it goes on. It is for what shows the present state, where the log shows changes.
func Observe(ctx context.Context, observer func(waitsFor string)) context.Context {
	return context.WithValue(ctx, observerKey{}, observer)
}

type observerKey struct{}

// For calls try until it returns nil, with a growing pause in between, and logs what it waits for and why: when waiting
// begins, when the reason changes, now and then, and when it is over. It returns nil, the cause of ctx's end, or a
// Permanent error.
func For(ctx context.Context, log zerolog.Logger, what string, try func(context.Context) error) error {
	pause := &backoff.ExponentialBackOff{InitialInterval: first, RandomizationFactor: 0.3, Multiplier: 1.6, MaxInterval: longest}
	pause.Reset()
	observe, _ := ctx.Value(observerKey{}).(func(string))
	if observe == nil {
		observe = func(string) {}
	}
	began, said, last := time.Now(), time.Time{}, ""
	for {
		err := once(ctx, try)
		var lasting *permanent
		switch {
		case err == nil:
			if last != "" {
				log.Info().Str("for", what).Dur("waited", time.Since(began).Round(time.Millisecond)).Msg("waited, going on")
			}
			observe("")
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case errors.As(err, &lasting):
			return fmt.Errorf("%s: %w", what, lasting.error)
		}
		observe("waits for " + what + ": " + err.Error())
		if err.Error() != last || time.Since(said) >= remind {
			log.Warn().Str("for", what).Err(err).Msg("waiting")
			said, last = time.Now(), err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-time.After(pause.NextBackOff()):
		}
	}
}

func once(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return try(ctx)
}
