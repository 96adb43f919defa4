package http1

import "sync"

const (
	smallSize = 4 << 10  // a request's head, an answer's head with the beginning of its body
	largeSize = 32 << 10 // a request's body
	// chunkHead is room for a chunk's size before its data, chunkTail for what follows it.
	chunkHead = 18
	chunkTail = 2
	// keptFields is for how many fields of heads an attempt that is used again keeps room.
	keptFields = 256
)

var (
	smalls   = sync.Pool{New: func() any { return new([smallSize]byte) }}
	larges   = sync.Pool{New: func() any { return new([largeSize]byte) }}
	attempts = sync.Pool{New: func() any { return new(attempt) }}
)
