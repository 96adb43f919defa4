package confgen

import (
	"time"

	"github.com/rs/zerolog"
)

// toldEvery is how often a failure that goes on, or comes and goes, is told again.
const toldEvery = 10 * time.Second

// troubles tells failures of what is tried again and again: when one is new or has not been told for a while, and once
// when it is over. It is used by one goroutine.
type troubles struct {
	log  zerolog.Logger
	byOp map[string]*trouble
}

type trouble struct {
	told time.Time // when last
	open bool      // told, and not yet told to be over
}

func newTroubles(log zerolog.Logger) *troubles {
	return &troubles{log: log, byOp: map[string]*trouble{}}
}

func (t *troubles) failed(op string, err error) {
	b := t.byOp[op]
	if b == nil {
		b = &trouble{}
		t.byOp[op] = b
	}
	level := zerolog.DebugLevel
	if b.told.IsZero() || time.Since(b.told) >= toldEvery {
		level = zerolog.WarnLevel
		b.told, b.open = time.Now(), true
	}
	t.log.WithLevel(level).Err(err).Str("op", op).Msg("failed; trying again")
}

func (t *troubles) works(op string) {
	if b := t.byOp[op]; b != nil && b.open {
		b.open = false
		t.log.Info().Str("op", op).Msg("works again")
	}
}
