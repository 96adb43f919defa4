package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/registrytest"
)

// reads are all that the API reads.
func reads(s *registry.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"services":    func(ctx context.Context) error { return nonEmpty(s.ListServices(ctx, registry.ServiceFilter{})) },
		"service":     func(ctx context.Context) error { _, err := s.GetService(ctx, "orders"); return err },
		"instances":   func(ctx context.Context) error { return nonEmpty(s.ListInstances(ctx, registry.InstanceFilter{})) },
		"instance":    func(ctx context.Context) error { _, err := s.GetInstance(ctx, "orders", "a1"); return err },
		"agents":      func(ctx context.Context) error { return nonEmpty(s.ListAgents(ctx, nil, 0)) },
		"events":      func(ctx context.Context) error { return nonEmpty(s.ListEvents(ctx, registry.EventFilter{})) },
		"last event":  func(ctx context.Context) error { _, err := s.LastEventSeq(ctx); return err },
		"streams":     func(ctx context.Context) error { return nonEmpty(s.Streams(ctx)) },
		"rejected":    func(ctx context.Context) error { return nonEmpty(s.ListRejected(ctx, registry.RejectedFilter{})) },
		"counts":      func(ctx context.Context) error { return nonEmpty(s.RejectedCounts(ctx, registry.RejectedFilter{})) },
		"versions":    func(ctx context.Context) error { return nonEmpty(s.ListVersions(ctx, 0, 0)) },
		"version":     func(ctx context.Context) error { _, err := s.GetVersion(ctx, 0); return err },
		"versions on": func(ctx context.Context) error { return nonEmpty(s.VersionsAfter(ctx, 40)) },
		"records":     func(ctx context.Context) error { return nonEmpty(s.VersionRecords(ctx, 43, "", "", 0)) },
	}
}

func nonEmpty[T any](list []T, err error) error {
	if err == nil && len(list) == 0 {
		return errors.New("nothing was read")
	}
	return err
}

func TestReadsWaitForNoWriter(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		for _, table := range []string{"revision SET n = 99", "stream SET clock = 0", "hot SET clock = 0", "instance SET cause = ''", "service SET revision = 0",
			"event SET cause = ''", "rejected SET detail = ''", "rejected_count SET n = 0", "topology_version SET cause = ''", "topology_record SET value = NULL", "agent_report SET report = ''"} {
			if _, err := tx.Exec("UPDATE " + table); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for name, read := range reads(s) {
			if err := read(ctx); err != nil {
				t.Errorf("%s while a transaction holds every row: %v", name, err)
			}
		}
	})
}

func TestAnAgeIsNeverMadeOfTwoMoments(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		done, stop := make(chan error, 1), make(chan struct{})
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if err := tick(db); err != nil {
					done <- err
					return
				}
			}
		}()
		for range 100 {
			views, err := s.ListInstances(t.Context(), registry.InstanceFilter{Services: []string{"orders"}, Status: []registry.Status{registry.StatusDraining}})
			if err != nil {
				t.Error(err)
				break
			}
			if len(views) != 1 || *views[0].Seen.Age != 2*time.Second {
				t.Errorf("%+v: its beats are always 2 s old", views[0].Seen)
				break
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// tick moves the clock of partition 0 and that of its beats by 1 s, at once.
func tick(db *sqlx.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for _, table := range []string{"stream", "hot"} {
		if _, err := tx.Exec("UPDATE " + table + " SET clock = clock + 1000000 WHERE part = 0"); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func ptr[T any](v T) *T { return &v }

func TestInstancesAreChosen(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		for name, c := range map[string]struct {
			filter registry.InstanceFilter
			want   string
		}{
			"all":            {registry.InstanceFilter{}, "billing/b1 orders/a1 orders/a2 orders/a3 orders/a4 orders/a5 orders/a6 orders/a7"},
			"agents too":     {registry.InstanceFilter{Agents: true, Status: []registry.Status{"up"}, Zone: ptr("a")}, "orders/a1 orders/a3 orders/a7 upstrand-proxy/p1 upstrand-proxy/p2 upstrand-proxy/p3 upstrand-proxy/p4 upstrand-proxy/p5"},
			"named agents":   {registry.InstanceFilter{Services: []string{"upstrand-proxy", "billing"}, Limit: 2}, "billing/b1 upstrand-proxy/p1"},
			"tag":            {registry.InstanceFilter{Tags: []string{"canary"}}, "orders/a1 orders/a2"},
			"tags":           {registry.InstanceFilter{Tags: []string{"canary", "blue"}}, "orders/a1"},
			"tag's case":     {registry.InstanceFilter{Tags: []string{"Canary"}}, ""},
			"part of a tag":  {registry.InstanceFilter{Tags: []string{"canar"}}, ""},
			"tag's pattern":  {registry.InstanceFilter{Tags: []string{"cana%"}}, ""},
			"tag's quotes":   {registry.InstanceFilter{Tags: []string{`blue","canary`}}, ""},
			"zone's quotes":  {registry.InstanceFilter{Zone: ptr("' OR ''='")}, ""},
			"no zone":        {registry.InstanceFilter{Zone: ptr("")}, "billing/b1 orders/a6"},
			"version":        {registry.InstanceFilter{Version: ptr("1.4.0")}, "orders/a1 orders/a2"},
			"liveness":       {registry.InstanceFilter{Liveness: []registry.Liveness{"unproven", "left"}}, "orders/a3 orders/a5"},
			"everything":     {registry.InstanceFilter{Services: []string{"orders"}, Zone: ptr("b"), Version: ptr("1.4.0"), Tags: []string{"canary"}, Status: []registry.Status{"draining"}, Liveness: []registry.Liveness{"live"}}, "orders/a2"},
			"after":          {registry.InstanceFilter{After: &registry.InstanceKey{Service: "orders", ID: "a5"}}, "orders/a6 orders/a7"},
			"after a gap":    {registry.InstanceFilter{After: &registry.InstanceKey{Service: "night", ID: "z"}, Limit: 1}, "orders/a1"},
			"after the last": {registry.InstanceFilter{After: &registry.InstanceKey{Service: "orders", ID: "a7"}}, ""},
		} {
			views, err := s.ListInstances(t.Context(), c.filter)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			var names []string
			for _, v := range views {
				names = append(names, v.Service+"/"+v.ID)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s: %s\nwant %s", name, got, c.want)
			}
		}
	})
}

func TestServicesAreChosen(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		registrytest.Insert(t, db, "service", registrytest.Row{"name": "upstrand-proxy"}) // never listed, should there be one
		for name, c := range map[string]struct {
			filter registry.ServiceFilter
			want   string
		}{
			"all":             {registry.ServiceFilter{}, "billing orders web"},
			"empty":           {registry.ServiceFilter{State: registry.ServiceEmpty}, "billing web"},
			"serving":         {registry.ServiceFilter{State: registry.ServiceServing}, "orders"},
			"prefix":          {registry.ServiceFilter{Prefix: "b"}, "billing"},
			"whole name":      {registry.ServiceFilter{Prefix: "orders"}, "orders"},
			"prefix of ours":  {registry.ServiceFilter{Prefix: "upstrand"}, ""},
			"longer":          {registry.ServiceFilter{Prefix: "ordersx"}, ""},
			"pattern":         {registry.ServiceFilter{Prefix: "%"}, ""},
			"after":           {registry.ServiceFilter{After: "billing", Limit: 1}, "orders"},
			"after and state": {registry.ServiceFilter{After: "billing", State: registry.ServiceEmpty}, "web"},
		} {
			views, err := s.ListServices(t.Context(), c.filter)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			var names []string
			for _, v := range views {
				names = append(names, v.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	})
}

func TestTheContentOfEveryVersionIsRead(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		registrytest.Fleet(t, db)
		registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "route/ü", "version": 43, "value": []byte("1")})
		registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "route/üb", "version": 43, "value": []byte("2")})
		registrytest.Insert(t, db, "topology_record", registrytest.Row{"record_key": "route/ý", "version": 43, "value": []byte("3")})
		for _, c := range []struct {
			version       int64
			prefix, after string
			limit         int
			want          string
		}{
			{40, "", "", 0, "route//orders service/orders upstrand/orders upstream/old upstream/orders"},
			{41, "", "", 0, "route//orders service/billing service/orders upstrand/orders upstream/old upstream/orders"},
			{43, "", "", 0, "route//orders route/ü route/üb route/ý service/billing service/orders upstrand/orders upstream/orders"},
			{43, "upstream/", "", 0, "upstream/orders"},
			{43, "route/ü", "", 0, "route/ü route/üb"},
			{43, "", "route/üb", 2, "route/ý service/billing"},
			{39, "", "", 0, ""},
		} {
			records, err := s.VersionRecords(t.Context(), c.version, c.prefix, c.after, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for _, r := range records {
				keys = append(keys, r.Key)
			}
			if got := strings.Join(keys, " "); got != c.want {
				t.Errorf("version %d, prefix %q, after %q: %s\nwant %s", c.version, c.prefix, c.after, got, c.want)
			}
		}
		old, err := s.VersionRecords(t.Context(), 40, "service/", "", 0)
		if err != nil || !strings.Contains(string(old[0].Value), `"a5"`) {
			t.Errorf("version 40 has %s, %v", old[0].Value, err)
		}
	})
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, _ *sqlx.DB) {
		_, service := s.GetService(t.Context(), "x")
		_, instance := s.GetInstance(t.Context(), "x", "y")
		_, version := s.GetVersion(t.Context(), 7)
		_, newest := s.GetVersion(t.Context(), 0)
		for _, err := range []error{service, instance, version, newest} {
			if !errors.Is(err, registry.ErrNotFound) {
				t.Error(err)
			}
		}
		if last, err := s.LastEventSeq(t.Context()); last != 0 || err != nil {
			t.Errorf("the last event of none is %d, %v", last, err)
		}
	})
}

// BenchmarkReads has a fleet of 100,000 instances in 500 services.
func BenchmarkReads(b *testing.B) {
	for name, open := range map[string]func(testing.TB) (*registry.Store, *sqlx.DB){"sqlite": registrytest.SQLite, "mysql": registrytest.MySQL} {
		b.Run(name, func(b *testing.B) {
			s, db := open(b)
			crowd(b, db, 100_000)
			ctx := b.Context()
			for name, read := range map[string]func() error{
				"page of all": func() error { return nonEmpty(s.ListInstances(ctx, registry.InstanceFilter{Limit: 100})) },
				"page far in": func() error {
					return nonEmpty(s.ListInstances(ctx, registry.InstanceFilter{Limit: 100, After: &registry.InstanceKey{Service: "s450", ID: "i100"}}))
				},
				"page of service": func() error {
					return nonEmpty(s.ListInstances(ctx, registry.InstanceFilter{Limit: 100, Services: []string{"s250"}}))
				},
				"rare zone": func() error {
					return nonEmpty(s.ListInstances(ctx, registry.InstanceFilter{Limit: 100, Zone: ptr("rare")}))
				},
				"services": func() error { return nonEmpty(s.ListServices(ctx, registry.ServiceFilter{Limit: 100})) },
				"service":  func() error { _, err := s.GetService(ctx, "s250"); return err },
				"instance": func() error { _, err := s.GetInstance(ctx, "s250", "i99"); return err },
			} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						if err := read(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// crowd writes n instances, 200 in a service.
func crowd(b *testing.B, db *sqlx.DB, n int) {
	registrytest.Insert(b, db, "stream", registrytest.Row{"part": 0, "clock": 1e9})
	tx, err := db.Beginx()
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < n; i += 200 {
		var rows, hot []string
		for j := i; j < i+200; j++ {
			zone := "a"
			if j%5000 == 0 {
				zone = "rare"
			}
			rows = append(rows, fmt.Sprintf("(%d,'s%03d','i%d',1,'up','live','first beat','http','10.0.0.1',%d,'',1,0,1,10,0,'%s','1.0','','',10,30,0,0,1,1,1)", j+1, i/200, j%200, j%60000, zone))
			hot = append(hot, fmt.Sprintf("(%d,0,999,1,1,1,1,1,1,1,1,1)", j+1))
		}
		for _, query := range []string{
			fmt.Sprintf("INSERT INTO service (name, created_at, emptied_at, revision) VALUES ('s%03d',1,0,1)", i/200),
			"INSERT INTO instance (id, service, iid, incarnation, status, liveness, cause, scheme, ip, port, url, weight, max_conns, max_fails, fail_timeout, slow_start, zone, app_version, tags, meta, beat_interval, stale_after, unproven_clock, stale_clock, created_at, changed_at, revision) VALUES " + strings.Join(rows, ","),
			"INSERT INTO hot (id, part, clock, incarnation, seq, received_at, skew, in_flight, rps_milli, latency_us, cpu_milli, memory) VALUES " + strings.Join(hot, ","),
		} {
			if _, err := tx.Exec(query); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}
