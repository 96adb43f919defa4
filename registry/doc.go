// Package registry is what the fleet is known to be: services, their instances, who owns which address and route, how
// far each partition of the heartbeat topic has been applied, what operators declared, and the versions that were published
// from all that. One Store speaks to MySQL or MariaDB in production and to SQLite when embedded.
//
// A partition's owner opens a Stream and applies batches of its log. A batch is one transaction: its first statement
// moves the partition's offset from the place where the batch begins, so a batch is applied once or not at all, by
// whoever comes first. Ages are measured on the partition's clock, an amount of observed time that only pulses in the log
// move, so the state is a function of the logs and no wall clock judges anyone.
//
// Instance data is in two parts. What routing is built from (instance) is written only when it changes, and raises the
// registry revision; what every beat changes (hot) raises nothing and is never read by those who follow the revision.
//
// Lock order of every transaction: stream, hot (by id), revision, then address, instance, service, route_claim and declared,
// then event. All writers of the tables after revision hold its row, so what is read below it stays as read until commit, and
// revisions and events are numbered in the order in which they become visible.
//
// A process that is stopped in a transaction holds its locks until the server ends the session, so pools should have it bear
// little silence. A lease is changed by single statements, which hold no lock meanwhile; a new version is inserted under the
// lock of the lease's row.
//
// The package is not a Kafka client, decodes no beats, serves no HTTP, logs nothing and starts no goroutine.
package registry
