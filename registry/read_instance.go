package registry

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// instanceColumns are i, h and s of one instance; the last beat's age is a difference of two clocks of one partition
// that this very SELECT reads, so it can't mix two moments.
const instanceColumns = `i.id, i.service, i.iid, i.incarnation, i.status, i.liveness, i.cause, i.scheme, i.ip, i.port, i.url,
  i.weight, i.max_conns, i.max_fails, i.fail_timeout, i.slow_start, i.zone, i.app_version, i.tags, i.meta,
  i.beat_interval, i.stale_after, i.unproven_clock, i.created_at, i.changed_at, i.revision,
  h.part, h.clock AS seen_clock, h.incarnation AS seen_incarnation, h.seq, h.received_at, h.skew,
  h.in_flight, h.rps_milli, h.latency_us, h.cpu_milli, h.memory, s.clock AS stream_clock, COALESCE(c.service, '') AS url_owner`

// instanceTables joins c, the claim of another service on the instance's url.
func (s *Store) instanceTables() string {
	return ` FROM instance i LEFT JOIN hot h ON h.id = i.id LEFT JOIN stream s ON s.part = h.part
  LEFT JOIN route_claim c ON c.path = ` + s.dialect.routePath("i.url") + ` AND c.service <> i.service AND i.liveness IN ('live', 'unproven')`
}

type instanceViewRow struct {
	ID          int64  `db:"id"`
	Service     string `db:"service"`
	IID         string `db:"iid"`
	Incarnation int64  `db:"incarnation"`
	Status      string `db:"status"`
	Liveness    string `db:"liveness"`
	Cause       string `db:"cause"`
	Scheme      string `db:"scheme"`
	IP          string `db:"ip"`
	Port        int    `db:"port"`
	URL         string `db:"url"`
	Weight      int    `db:"weight"`
	MaxConns    int    `db:"max_conns"`
	MaxFails    int    `db:"max_fails"`
	FailTimeout int64  `db:"fail_timeout"`
	SlowStart   int64  `db:"slow_start"`
	Zone        string `db:"zone"`
	Version     string `db:"app_version"`
	Tags        string `db:"tags"`
	Meta        string `db:"meta"`
	Interval    int64  `db:"beat_interval"`
	StaleAfter  int64  `db:"stale_after"`
	UnprovenAt  int64  `db:"unproven_clock"`
	CreatedAt   int64  `db:"created_at"`
	ChangedAt   int64  `db:"changed_at"`
	Revision    int64  `db:"revision"`

	Part            sql.NullInt32 `db:"part"`
	SeenClock       sql.NullInt64 `db:"seen_clock"`
	SeenIncarnation sql.NullInt64 `db:"seen_incarnation"`
	Seq             sql.NullInt64 `db:"seq"`
	ReceivedAt      sql.NullInt64 `db:"received_at"`
	Skew            sql.NullInt64 `db:"skew"`
	InFlight        sql.NullInt64 `db:"in_flight"`
	RPSMilli        sql.NullInt64 `db:"rps_milli"`
	LatencyUS       sql.NullInt64 `db:"latency_us"`
	CPUMilli        sql.NullInt64 `db:"cpu_milli"`
	Memory          sql.NullInt64 `db:"memory"`
	StreamClock     sql.NullInt64 `db:"stream_clock"`
	URLOwner        string        `db:"url_owner"`
}

// ListInstances is a page of instances in the order of service and id.
func (s *Store) ListInstances(ctx context.Context, f InstanceFilter) ([]InstanceView, error) {
	w := instanceWhere(f)
	rows, err := list[instanceViewRow](ctx, s.db, "instances", "SELECT "+instanceColumns+s.instanceTables()+w.String()+
		" ORDER BY i.service, i.iid LIMIT ?", append(w.args, pageLimit(f.Limit))...)
	if err != nil {
		return nil, err
	}
	views := make([]InstanceView, len(rows))
	for i := range rows {
		if views[i], err = rows[i].view(); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// GetInstance is one instance, or ErrNotFound.
func (s *Store) GetInstance(ctx context.Context, service, id string) (InstanceView, error) {
	row, err := one[instanceViewRow](ctx, s.db, "instance "+service+"/"+id,
		"SELECT "+instanceColumns+s.instanceTables()+" WHERE i.service = ? AND i.iid = ?", service, id)
	if err != nil {
		return InstanceView{}, err
	}
	return row.view()
}

func instanceWhere(f InstanceFilter) *where {
	w := &where{}
	in(w, "i.service", f.Services)
	if len(f.Services) == 0 && !f.Agents {
		w.add("i.service < ? OR i.service >= ?", AgentPrefix, agentEnd)
	}
	if f.Zone != nil {
		w.add("i.zone = ?", *f.Zone)
	}
	if f.Version != nil {
		w.add("i.app_version = ?", *f.Version)
	}
	for _, tag := range f.Tags {
		quoted, _ := json.Marshal(tag) // a string always encodes
		w.add("INSTR(i.tags, ?) > 0", string(quoted))
	}
	in(w, "i.status", f.Status)
	in(w, "i.liveness", f.Liveness)
	w.after(f.After)
	return w
}

// after adds that an instance comes later than k. The first condition is implied by the second: it is the range that
// MySQL walks the index by, which it does not find in an OR or in a comparison of pairs.
func (w *where) after(k *InstanceKey) {
	if k == nil {
		return
	}
	w.add("i.service >= ?", k.Service)
	w.add("i.service > ? OR i.iid > ?", k.Service, k.ID)
}

func (r *instanceViewRow) view() (InstanceView, error) {
	v := InstanceView{Instance: Instance{
		DenseID: r.ID, Service: r.Service, ID: r.IID, Incarnation: r.Incarnation,
		Status: Status(r.Status), Liveness: Liveness(r.Liveness), Cause: r.Cause,
		Interval: micros(r.Interval), StaleAfter: micros(r.StaleAfter),
		CreatedAt: r.CreatedAt, ChangedAt: r.ChangedAt, Revision: r.Revision,
		Attrs: Attrs{
			Scheme: r.Scheme, IP: r.IP, Port: r.Port, URL: r.URL, Weight: r.Weight, MaxConns: r.MaxConns,
			MaxFails: r.MaxFails, FailTimeout: micros(r.FailTimeout), SlowStart: micros(r.SlowStart),
			Zone: r.Zone, Version: r.Version,
		},
	}}
	if err := decodeColumn(r.Tags, &v.Attrs.Tags); err != nil {
		return v, fmt.Errorf("registry: instance %s/%s: tags: %w", r.Service, r.IID, err)
	}
	if err := decodeColumn(r.Meta, &v.Attrs.Meta); err != nil {
		return v, fmt.Errorf("registry: instance %s/%s: meta: %w", r.Service, r.IID, err)
	}
	if !IsAgent(r.Service) {
		v.URLOwner = r.URLOwner
	}
	v.Seen = r.seen()
	if v.Liveness == Unproven && r.StreamClock.Valid {
		held := max(0, micros(r.StreamClock.Int64-r.UnprovenAt))
		v.Unproven = &held
	}
	return v, nil
}

func decodeColumn(text string, out any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), out)
}

func (r *instanceViewRow) seen() *Seen {
	if !r.Part.Valid {
		return nil
	}
	seen := &Seen{
		Part: r.Part.Int32, Clock: micros(r.SeenClock.Int64), Incarnation: r.SeenIncarnation.Int64, Seq: r.Seq.Int64,
		ReceivedAt: r.ReceivedAt.Int64,
		Load: Load{
			InFlight: int(r.InFlight.Int64), RPS: float64(r.RPSMilli.Int64) / 1000,
			LatencyMS: float64(r.LatencyUS.Int64) / 1000, CPU: float64(r.CPUMilli.Int64) / 1000, Memory: r.Memory.Int64,
		},
	}
	if r.StreamClock.Valid {
		age := max(0, micros(r.StreamClock.Int64-r.SeenClock.Int64))
		seen.Age = &age
	}
	if r.Skew.Int64 != SkewUnknown {
		skew := micros(r.Skew.Int64)
		seen.Skew = &skew
	}
	return seen
}

type agentViewRow struct {
	instanceViewRow
	Report     []byte        `db:"report"`
	ReportedAt sql.NullInt64 `db:"reported_at"`
}

// ListAgents is a page of the agents (services named upstrand-…) in the order of service and id.
func (s *Store) ListAgents(ctx context.Context, after *InstanceKey, limit int) ([]AgentView, error) {
	w := &where{}
	w.prefix("i.service", AgentPrefix)
	w.after(after)
	rows, err := list[agentViewRow](ctx, s.db, "agents", "SELECT "+instanceColumns+
		", a.report, a.received_at AS reported_at"+s.instanceTables()+" LEFT JOIN agent_report a ON a.id = i.id"+w.String()+
		" ORDER BY i.service, i.iid LIMIT ?", append(w.args, pageLimit(limit))...)
	if err != nil {
		return nil, err
	}
	views := make([]AgentView, len(rows))
	for i := range rows {
		v, err := rows[i].view()
		if err != nil {
			return nil, err
		}
		views[i] = AgentView{InstanceView: v, Report: rows[i].Report, ReportedAt: rows[i].ReportedAt.Int64}
	}
	return views, nil
}
