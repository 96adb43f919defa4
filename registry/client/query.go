package client

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Page asks for a part of a list. The zero value is the first page in the server's default size.
type Page struct {
	Limit  int
	Cursor string
}

// ServiceQuery chooses services. The zero value means all but the parts of Upstrand itself.
type ServiceQuery struct {
	Prefix string // beginning of the name
	State  string // serving, draining or empty
	Page
}

// InstanceQuery chooses instances. The zero value means all but the parts of Upstrand itself.
type InstanceQuery struct {
	Services []string // any of these
	Zone     *string  // a pointer to "" means those that name none
	Version  *string  // likewise
	Tags     []string // all of these
	Status   []string // any of these
	Liveness []string // any of these
	Page
}

// EventQuery chooses events.
type EventQuery struct {
	Service string
	ID      string
	Kinds   []string  // any of these
	Since   time.Time // at or after; zero: any time
	// After, when not nil, asks for the events after that number, oldest first; else the newest come first.
	After *int64
	// Wait is how long the registry may hold the answer back until there is an event; needs After.
	Wait time.Duration
	Page
}

// TopologyQuery chooses the records of one version.
type TopologyQuery struct {
	Version int64  // 0: the newest
	Prefix  string // beginning of the key, such as route/
	Page
}

// RejectedQuery chooses rejected records.
type RejectedQuery struct {
	Reasons   []string // any of these
	Partition *int32
	Page
}

// values collects the parameters that are set.
type values struct{ url.Values }

func newValues(p Page) values {
	v := values{url.Values{}}
	if p.Limit != 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	v.text("cursor", p.Cursor)
	return v
}

func (v values) text(name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func (v values) optional(name string, value *string) {
	if value != nil {
		v.Set(name, *value)
	}
}

func (v values) list(name string, list []string) {
	if len(list) > 0 {
		v.Set(name, strings.Join(list, ","))
	}
}

func (q ServiceQuery) values() url.Values {
	v := newValues(q.Page)
	v.text("prefix", q.Prefix)
	v.text("state", q.State)
	return v.Values
}

func (q InstanceQuery) values() url.Values {
	v := newValues(q.Page)
	v.list("service", q.Services)
	v.optional("zone", q.Zone)
	v.optional("version", q.Version)
	v.list("tag", q.Tags)
	v.list("status", q.Status)
	v.list("liveness", q.Liveness)
	return v.Values
}

func (q EventQuery) values() url.Values {
	v := newValues(q.Page)
	v.text("service", q.Service)
	v.text("id", q.ID)
	v.list("kind", q.Kinds)
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.After != nil {
		v.Set("after", strconv.FormatInt(*q.After, 10))
	}
	if q.Wait > 0 {
		v.Set("wait_s", strconv.FormatFloat(q.Wait.Seconds(), 'f', -1, 64))
	}
	return v.Values
}

func (q TopologyQuery) values() url.Values {
	v := newValues(q.Page)
	if q.Version != 0 {
		v.Set("version", strconv.FormatInt(q.Version, 10))
	}
	v.text("prefix", q.Prefix)
	return v.Values
}

func (q RejectedQuery) values() url.Values {
	v := newValues(q.Page)
	v.list("reason", q.Reasons)
	if q.Partition != nil {
		v.Set("partition", strconv.Itoa(int(*q.Partition)))
	}
	return v.Values
}
