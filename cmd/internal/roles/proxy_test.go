package roles

import (
	"reflect"
	"testing"
	"time"

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
	engine := reflect.ValueOf(x.Engine)
	for i := range engine.NumField() {
		name := engine.Type().Field(i).Name
		d, ok := engine.Field(i).Interface().(time.Duration)
		if !ok {
			continue
		}
		if other := seen[d]; d < 100*time.Second || other != "" {
			t.Errorf("%s is %v, and so is %q", name, d, other)
		}
		seen[d] = name
	}
	if x.Engine.PeerIdleMax != 7 {
		t.Errorf("PeerIdleMax is %d", x.Engine.PeerIdleMax)
	}
}
