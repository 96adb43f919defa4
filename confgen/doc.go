// Package confgen turns the registry into the topology that proxies serve: Build says what the topology is, Generator
// keeps the topic equal to it.
//
// # The two flows
//
// Build is pure: instances, services, claims and the declared topology in, a topology.Config out. The Generator holds
// the same in an incremental form, so that one join costs what one join changes.
//
// The Generator that holds the lease leads. Every poll it (1) reads its own topic to the end, (2) asks the registry what
// changed, (3) writes a version row while the lease's epoch is its own, (4) appends the changed records and a commit to
// the topic. What it wrote counts only once it has read it back, so a crash, a lost answer or a foreign write at any
// point leaves a difference between the database's newest version and the topic, and the next round, of this leader or
// of the next, writes just that difference again.
//
// # Invariants
//
//   - The database's newest version is written before the topic's. A topic or an agent that is ahead of it means that the
//     database was restored: nothing is published until the stream clocks prove that the dead have been noticed. For
//     agents alone that is so once in a leadership, unless the database is seen to go back: a report is but a beat.
//   - A commit follows its records: in the same batch, or after all of them were acknowledged.
//   - (epoch, version) of what a leader writes is never below anything that it has seen in the database, on the topic or
//     in a plausible report of an agent. Versions never go back. A record whose numbers are above topology.MaxCount is
//     damage, as one without any: readers ignore it, the leader writes over it.
//   - Nothing is written once the holder's own clock, counted from before the last renewal, says that the lease may be
//     over. What a paused leader had under way can still arrive: readers ignore it by its pair, the next leader repairs it.
//
// It is not the registry (package registry), not the form of what is published (confgen/topology), and knows no Kafka
// (confgen/publish).
package confgen
