package http1

import "errors"

// errSpoke: the peer closed a kept connection, or said something on it that nobody had asked for.
var errSpoke = errors.New("the kept connection can't be used any more")

// writeError is an error of writing: what the peer said before it may be there to read.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }
