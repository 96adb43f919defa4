package kafkaconn

import (
	"fmt"
	"strconv"
	"strings"
)

// Topic is a topic as we create it, and what an existing one must be like.
type Topic struct {
	Name        string
	Partitions  int
	Replication int // -1: the broker's default
	Settings    []Setting
	// Fixed says that another number of partitions breaks us; else it is only worth a warning.
	Fixed bool
}

// Setting is one configuration entry of a topic: the value it is created with and what is wrong with the value found.
type Setting struct {
	Name, Value string
	// Check returns what is wrong with a value found, and whether that breaks us. Empty: nothing.
	Check func(found string) (wrong string, breaks bool)
}

// MaxRecordBytes is what the topic of the topology must take in one record batch: a version is written in one batch where
// it fits.
const MaxRecordBytes = 8 << 20

// HeartbeatTopic is the topic of the beats: what is older than an hour is of no use to anyone, and small segments let the
// broker delete it in time. LogAppendTime, since a sender whose clock is wrong must not decide how long its beats are kept.
func (o *Options) HeartbeatTopic() Topic {
	return Topic{
		Name: o.TopicHeartbeat, Partitions: o.Partitions, Replication: o.Replication,
		Settings: []Setting{
			{Name: "cleanup.policy", Value: "delete", Check: want("delete", false, "beats of an hour ago must go, and compaction would drop pulses")},
			{Name: "retention.ms", Value: "3600000", Check: atLeast(10*60*1000, false, "a listener that is away for longer than the retention loses beats")},
			{Name: "segment.ms", Value: "600000"},
			{Name: "segment.bytes", Value: strconv.Itoa(64 << 20)},
			{Name: "message.timestamp.type", Value: "LogAppendTime", Check: want("LogAppendTime", false, "a sender with a wrong clock decides how long its beats are kept")},
		},
	}
}

// UpstreamConfTopic is the topic of the topology: one partition, since a version's records and its commit must stand in one
// order; compacted, since it is the memory of every agent that starts.
func (o *Options) UpstreamConfTopic() Topic {
	return Topic{
		Name: o.TopicUpstreamConf, Partitions: 1, Replication: o.Replication, Fixed: true,
		Settings: []Setting{
			{Name: "cleanup.policy", Value: "compact", Check: want("compact", true, "with another policy the broker deletes live parts of the topology")},
			{Name: "max.message.bytes", Value: strconv.Itoa(MaxRecordBytes), Check: atLeast(MaxRecordBytes, true, "a large topology could not be published")},
			{Name: "min.cleanable.dirty.ratio", Value: "0.1"},
			{Name: "segment.ms", Value: "600000"},
			{Name: "segment.bytes", Value: strconv.Itoa(64 << 20)},
			{Name: "delete.retention.ms", Value: "86400000", Check: atLeast(60*60*1000, false, "an agent that reads slowly can miss what was removed")},
		},
	}
}

func want(value string, breaks bool, why string) func(string) (string, bool) {
	return func(found string) (string, bool) {
		if strings.EqualFold(strings.ReplaceAll(found, " ", ""), value) {
			return "", false
		}
		return fmt.Sprintf("is %q, should be %q: %s", found, value, why), breaks
	}
}

func atLeast(least int64, breaks bool, why string) func(string) (string, bool) {
	return func(found string) (string, bool) {
		n, err := strconv.ParseInt(found, 10, 64)
		if err == nil && (n >= least || n == -1) {
			return "", false
		}
		return fmt.Sprintf("is %q, should be %d at least: %s", found, least, why), breaks
	}
}
