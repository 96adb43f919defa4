package roles

import (
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Every limit of time that the engine has must be in reach of a flag, and each flag must set its own.
func TestEveryTimeoutOfTheEngineHasAFlag(t *testing.T) {
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	set, x := settings.NewSet(fs), &Proxy{}
	x.timeFlags(set)
	seconds := 100
	fs.VisitAll(func(f *pflag.Flag) {
		value := time.Duration(seconds) * time.Second
		text := value.String()
		if f.Name == "upstream-keepalive" {
			text = "7"
		}
		if err := f.Value.Set(text); err != nil {
			t.Fatal(err)
		}
		seconds++
	})
	if ps := set.Problems(); ps != nil {
		t.Fatal(ps)
	}
	seen := map[time.Duration]string{}
	for _, limits := range []any{x.Engine, x.Peers} {
		all := reflect.ValueOf(limits)
		for i := range all.NumField() {
			name := all.Type().Field(i).Name
			d, ok := all.Field(i).Interface().(time.Duration)
			if !ok || name == "ClientAge" { // no limit: only a file sets one, keepalive_time
				continue
			}
			if other := seen[d]; d < 100*time.Second || other != "" {
				t.Errorf("%s is %v, and so is %q", name, d, other)
			}
			seen[d] = name
		}
	}
	if x.Peers.IdleMax != 7 {
		t.Errorf("IdleMax is %d", x.Peers.IdleMax)
	}
}

// The address that others see is the right one, however late it is found.
func TestAddressIsLookedUpUntilFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		fails := 2
		lookup := func(_ context.Context, broker string) (string, error) {
			if asked = append(asked, broker); len(asked) <= fails {
				return "", errors.New("no such host")
			}
			return "10.0.0.7", nil
		}
		x, p, bound := &Proxy{}, &Process{Log: zerolog.Nop()}, &net.TCPAddr{IP: net.IPv6unspecified, Port: 8080}
		began := time.Now()
		ip, port := x.address(t.Context(), p, []string{"a:1", "b:1"}, bound, lookup)
		if ip != "10.0.0.7" || port != 8080 || time.Since(began) != 2*time.Second || !slices.Equal(asked, []string{"a:1", "b:1", "a:1"}) {
			t.Errorf("%s, %d after %v, asked %v", ip, port, time.Since(began), asked)
		}
		fails = 1000
		ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
		defer cancel()
		if ip, _ := x.address(ctx, p, []string{"a:1"}, bound, lookup); ip != "" {
			t.Errorf("%s, though none was found", ip)
		}
	})
}

// TestASuccessorBeatsWhenItServes: before, its beats would silence those of the process whose id it has.
func TestASuccessorBeatsWhenItServes(t *testing.T) {
	p := &Process{succession: succession{successor: true, serving: make(chan struct{})}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := (&Proxy{}).beat(ctx, p, nil, nil, nil, nil); err != nil || ctx.Err() == nil { // a beat would need the rest
		t.Error(err)
	}
}
