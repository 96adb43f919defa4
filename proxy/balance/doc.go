// Package balance picks a peer for a request, pick for pick as nginx does it: smooth weighted round robin with passive
// failure marks, connection limits and a backup group, the other methods on top of it, sessions bound to peers, and slow
// start. Every pick can say why.
//
// A Group is the immutable list of an upstream's peers as one routing table sees it. What moves is in the peers, which
// outlive tables: the rotation (current and effective weight), failures, open attempts, response times. All groups that
// an upstream ever has share one mutex, and it covers a pick together with the attempt that it opens, and the end of an
// attempt.
//
// A pick goes: Pass.Pick locks; the main part, and when that has nobody the backup part, is asked by choose: whom is the
// session bound to (sticky.go), else whom does the method like (methods.go names them), else, or among those alike, whose
// turn is it (rotation.go). It is linear in the number of peers for those that compare them: what it looks at of a peer
// is one cache line, and nearly always one compare of it.
//
// It is not a health checker and not a retry policy: it is told how an attempt ended, and it knows nothing of HTTP, of
// routing tables, of Kafka or of the registry.
//
// Lock order: Swap takes the mutexes of several upstreams in the order of their names; nothing else takes two.
package balance
