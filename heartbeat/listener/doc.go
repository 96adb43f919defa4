// Package listener carries heartbeats from Kafka to the registry.
//
// A [Listener] is one member of a consumer group. For every partition that the group assigns to it, it owns that
// partition for the length of the generation: it opens the partition's stream in the registry, reads the log from the
// offset that the registry holds, and applies what it reads, batch by batch, each batch as one transaction. The offset
// moves in that transaction, so a record is applied exactly once whatever happens to a listener; the offsets that it
// commits to Kafka are for lag tools only and are never read back.
//
// # Who writes the clock
//
// The owner also writes pulses into the partition: records that say how much time passed since the one before (see
// pulse.go). They are what a partition's clock advances by, and they are read back and applied in their place in the
// log like any beat. So the age of an instance is the observed time between two places of one log, and no stall of
// ours can make anyone look old:
//
//   - Nothing can be written to the partition: neither beats nor pulses arrive, the clock stands.
//   - Nothing can be read or the database is away: the owner stops fetching and stops pulsing. Pulses that it had
//     already written lie in the log with the beats that were sent at that time between them. When the backlog is
//     applied, each beat is stamped with the clock as it stood at its place, so an instance that kept beating is as old
//     as the distance from its last beat, not as the stall; and nobody is judged before the end of the log is reached.
//     Whether a pulse was written during the stall or not therefore changes no verdict on the living. Not writing them
//     only lets a dead one have its whole limit once more, which is what DESIGN promises.
//   - The owner is paused or dead: nobody pulses. A pause shows as one long gap between two pulses, of which two
//     intervals at most are counted; a new owner starts a session of its own, whose first pulse adds nothing.
//   - Two processes both believe that they own the partition: their pulses alternate, so none follows the one before
//     it in its session, and the clock stands until one of them has given up. Their batches are fenced by the offset.
//
// # Who is trusted
//
// Whoever may write topic_heartbeat. A record of it says who it is of, and nothing proves that: it may be a goodbye for
// any instance, an address that is another's, the report of an agent, or a run of pulses that ages a whole partition by
// 2 s each. To count only pulses of the owner's own session would not help, and would break what holds otherwise: after
// a takeover or a restart the pulses of the owners before are read back and must count, and the clock must be a function
// of the log alone, the same for whoever applies it. So keep others out with Kafka's ACLs: write for the services that
// beat and for the listeners and proxies only, or let services beat through the registry's API, which writes no pulses,
// takes no beats of agents, and can stand behind whatever authenticates.
//
// # Bounds
//
// Memory per partition is bounded by one fetch response and two batches: the one in its transaction and the one that
// is being collected. A database that is away stops the fetch, not the membership in the group.
//
// # What it is not
//
// It decides nothing about instances: ordering by incarnation and seq, addresses, staleness and the unproven guard are
// the registry's, in the transaction that applies a batch. It holds no state that must survive.
package listener
