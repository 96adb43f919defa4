package proxy

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// quietLines is how many lines a second say one kind of thing that goes wrong: they come with an attack, or with a backend
// that is down, and must not become one.
const quietLines = 10

// quietLog says so many lines a second and no more, and how many it left out with the first one after.
type quietLog struct {
	log zerolog.Logger

	mu     sync.Mutex
	second int64 // since 1970
	said   int
	left   uint64
}

func newQuietLog(log zerolog.Logger) *quietLog { return &quietLog{log: log} }

// line begins a line; nil, which takes everything that is done with it, when it is left out.
func (q *quietLog) line(level zerolog.Level) *zerolog.Event {
	if level < q.log.GetLevel() || level < zerolog.GlobalLevel() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now().Unix(); now != q.second {
		q.second, q.said = now, 0
	}
	if q.said == quietLines {
		q.left++
		return nil
	}
	q.said++
	e := q.log.WithLevel(level)
	if q.left > 0 {
		e, q.left = e.Uint64("left_out", q.left), 0
	}
	return e
}
