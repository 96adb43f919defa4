// Package balance picks a peer for a request: smooth weighted round robin with passive failure marks, connection
// limits and a backup group, pick for pick as nginx does it.
//
// A Group is the immutable list of an upstream's peers as one routing table sees it. What moves is in the peers, which
// outlive tables: the rotation (current and effective weight), failures and open attempts. All groups that an upstream
// ever has share one mutex, and it covers a pick together with the attempt that it opens, and the end of an attempt.
//
// It is not a health checker and not a retry policy: it is told how an attempt ended, and it knows nothing of HTTP, of
// routing tables, of Kafka or of the registry.
//
// Lock order: Swap takes the mutexes of several upstreams in the order of their names; nothing else takes two.
package balance
