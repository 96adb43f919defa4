package wire

import "encoding/json"

// Event is one change of an instance or of operator state.
type Event struct {
	Seq      int64           `json:"seq" doc:"Increasing."`
	At       Time            `json:"at" format:"date-time"`
	Kind     string          `json:"kind" example:"joined"`
	Service  string          `json:"service,omitempty"`
	ID       string          `json:"id,omitempty" doc:"Instance; absent when the event is about more than one."`
	Actor    string          `json:"actor" doc:"The listener or confgen leader that made the change, or who asked for it."`
	Cause    string          `json:"cause"`
	Detail   json.RawMessage `json:"detail,omitempty"`
	Revision int64           `json:"revision,omitempty" doc:"Registry revision of the change; absent when it changed no routing."`
}

// EventList is a page of events.
type EventList struct {
	Events     []Event `json:"events" doc:"Newest first; with after, oldest first."`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Give it as cursor to get older events; absent on the last page and with after."`
	LastSeq    int64   `json:"last_seq" doc:"All events up to this number have been looked at: give it as after to get those that come later."`
}

// Stream is a partition of the heartbeat topic: its clock and how far it has been applied.
type Stream struct {
	Partition  int32   `json:"partition"`
	Clock      float64 `json:"clock_s" doc:"Observed time, in seconds; stands still while the pipeline does."`
	NextOffset *int64  `json:"next_offset,omitempty" doc:"Next offset to apply; absent before the first batch."`
	LogEnd     int64   `json:"log_end" doc:"End of the log as the owner last saw it."`
	Lag        *int64  `json:"lag,omitempty" doc:"Records that wait to be applied; absent before the first batch."`
	Owner      string  `json:"owner" doc:"Listener that applies it."`
	UpdatedAt  Time    `json:"updated_at" format:"date-time" doc:"When the owner last wrote."`
	UpdatedAge float64 `json:"updated_age_s" doc:"Seconds of wall time since then; an owner at work writes every second."`
}

// StreamList is all partitions, by number.
type StreamList struct {
	Streams []Stream `json:"streams"`
}

// Rejected is a record of the heartbeat topic that could not be used.
type Rejected struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Key       string `json:"key,omitempty"`
	Reason    string `json:"reason" example:"bad_port"`
	Detail    string `json:"detail"`
	Value     string `json:"value" doc:"Beginning of the record; bytes that are not UTF-8 or not printable as \\x.., a backslash as two."`
	At        Time   `json:"at" format:"date-time"`
}

// ReasonCount is how many records were ever rejected for a reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// RejectedList is a page of rejected records, newest first. Only the latest are kept; the counts cover all times.
type RejectedList struct {
	Rejected   []Rejected    `json:"rejected"`
	Counts     []ReasonCount `json:"counts" doc:"How many there ever were of the reasons and the partition that were asked for, also of those not kept any more."`
	NextCursor string        `json:"next_cursor,omitempty" doc:"Give it as cursor to get older ones; absent on the last page."`
}
