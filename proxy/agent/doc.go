// Package agent follows the topic of topologies and hands each one that is whole to a proxy: it reads the partition to
// its end before the first, then applies at commits, and keeps the last good topology on disk for a start without
// Kafka.
//
// It holds nothing back and makes nothing up: what the log says is judged by topology.Replica, and what can't be
// reproduced leaves the last good topology in force, is reported, and makes it read again from the start. It is not a
// member of a consumer group, commits no offsets and writes nothing to Kafka.
package agent
