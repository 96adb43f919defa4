package http1

import "sync"

const (
	smallSize  = 4 << 10  // a request's head
	answerSize = 16 << 10 // an answer's head with the beginning of its body
	largeSize  = 72 << 10 // a request's body: 64 KiB of it, which is what is held in memory, go out with the head in one write
	// chunkHead is room for a chunk's size before its data, chunkTail for what follows it.
	chunkHead = 18
	chunkTail = 2
	// keptFields is for how many fields of heads an attempt that is used again keeps room.
	keptFields = 256
)

var (
	smalls   = sync.Pool{New: func() any { return new([smallSize]byte) }}
	answers  = sync.Pool{New: func() any { return new([answerSize]byte) }}
	larges   = sync.Pool{New: func() any { return new([largeSize]byte) }}
	attempts = sync.Pool{New: func() any { return new(attempt) }}
)
