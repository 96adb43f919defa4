package http1

import (
	"sync"

	"github.com/upstrand/upstrand/proxy/forward"
)

const (
	smallSize  = 4 << 10  // a request's head
	answerSize = 16 << 10 // an answer's head with the beginning of its body
	largeSize  = 72 << 10 // a request's body: 64 KiB of it, which is what is held in memory, go out with the head in one write
	// chunkHead is room for a chunk's size before its data, chunkTail for what follows it.
	chunkHead = 18
	chunkTail = 2
	// fieldsMax is how many fields of heads there is room for beside what they point into; others cost an allocation.
	fieldsMax = 40
)

var (
	smalls   = sync.Pool{New: func() any { return new([smallSize]byte) }}
	intakes  = sync.Pool{New: func() any { return new(intake) }}
	larges   = sync.Pool{New: func() any { return new([largeSize]byte) }}
	attempts = sync.Pool{New: newAttempt}
)

// intake is what an answer is read into, and the fields of its heads. An attempt takes it when there is something to read: then
// it is one that was in use a moment ago and not when the request was written, and the processor still has it at hand.
type intake struct {
	fields [fieldsMax]forward.Field
	bytes  [answerSize]byte
}
