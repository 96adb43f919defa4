package topology

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// writer makes what a leader writes: the difference to its content, and a commit.
type writer struct {
	pair    Pair
	content map[string][]byte
}

func (w *writer) records() []Record {
	var out []Record
	for k, v := range w.content {
		out = append(out, Record{k, v})
	}
	return out
}

func (w *writer) commit(t testing.TB) Message {
	t.Helper()
	c := Commit{Version: w.pair.Version, Epoch: w.pair.Epoch, Digest: DigestOf(w.records()), Count: len(w.content), At: time.Unix(1, 0)}
	v, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return Message{Record: Record{KeyCommit, v}, Pair: w.pair}
}

func (w *writer) put(key string, value []byte) Message {
	if value == nil {
		delete(w.content, key)
	} else {
		w.content[key] = value
	}
	return Message{Record: Record{key, value}, Pair: w.pair}
}

func feed(r *Replica, m Message) (*Topology, error) {
	if m.Key == KeyCommit {
		return r.Commit(m.Value, m.Epoch, m.Version)
	}
	r.Put(m.Key, m.Value, m.Epoch, m.Version)
	return nil, nil
}

func service(name string, ids ...string) []byte {
	s := Service{Name: name}
	for i, id := range ids {
		s.Instances = append(s.Instances, Instance{ID: id, Order: int64(i), Addr: fmt.Sprintf("10.0.0.%d:80", i+1)})
	}
	r, err := EncodeService(s, 0)
	if err != nil {
		panic(err)
	}
	return r[0].Value
}

func TestReplica(t *testing.T) {
	r := NewReplica()
	w := &writer{pair: Pair{5, 1}, content: map[string][]byte{}}
	if _, err := feed(r, w.put("service/a", service("a", "1"))); err != nil {
		t.Fatal(err)
	}
	feed(r, w.put("service/b", service("b", "1")))
	topo, err := feed(r, w.commit(t))
	if err != nil {
		t.Fatal(err)
	}
	if topo.Version != 1 || topo.Epoch != 5 || len(topo.Config.Services) != 2 || !topo.At.Equal(time.Unix(1, 0)) {
		t.Fatalf("got %+v", topo)
	}
	first := topo.Config

	t.Run("a repeated commit gives the same Config", func(t *testing.T) {
		again, err := feed(r, w.commit(t))
		if err != nil || again.Config != first {
			t.Errorf("%v %v", again, err)
		}
	})
	t.Run("records without their commit change nothing and are missed by an old one", func(t *testing.T) {
		old := w.commit(t)
		w.pair.Version = 2
		feed(r, w.put("service/a", service("a", "1", "2")))
		if _, err := feed(r, old); !errors.Is(err, ErrDigest) {
			t.Errorf("commit without its content: %v", err)
		}
		topo, err := feed(r, w.commit(t))
		if err != nil || len(topo.Config.Services[0].Instances) != 2 {
			t.Fatalf("%+v %v", topo, err)
		}
		if &topo.Config.Services[1].Instances[0] != &first.Services[1].Instances[0] {
			t.Error("a service that did not change was decoded again")
		}
		if len(first.Services[0].Instances) != 1 {
			t.Error("the Config of before was changed")
		}
	})
	t.Run("an older record of the same key is ignored before any commit", func(t *testing.T) {
		fresh := NewReplica()
		fresh.Put("service/a", service("a", "new"), 2, 5)
		for _, p := range []Pair{{2, 4}, {1, 9}} {
			if fresh.Put("service/a", service("a", "old"), p.Epoch, p.Version) || fresh.Put("service/a", nil, p.Epoch, p.Version) {
				t.Errorf("%s was taken after 2/5", p)
			}
		}
		if string(fresh.Get("service/a")) != string(service("a", "new")) {
			t.Error("it took the place of the newer one")
		}
		if !fresh.Put("service/a", nil, 2, 5) || fresh.Put("service/a", service("a", "old"), 2, 4) || fresh.Get("service/a") != nil {
			t.Error("an older record came back over a tombstone")
		}
	})
	t.Run("a tombstone removes", func(t *testing.T) {
		w.pair.Version = 3
		feed(r, w.put("service/b", nil))
		topo, err := feed(r, w.commit(t))
		if err != nil || len(topo.Config.Services) != 1 {
			t.Fatalf("%+v %v", topo, err)
		}
		if len(r.entries) != 1 || len(r.tombs) != 0 {
			t.Errorf("tombstones are kept: %d entries, %d tombstones", len(r.entries), len(r.tombs))
		}
	})
	t.Run("a fenced leader's late batch is ignored", func(t *testing.T) {
		next := &writer{pair: Pair{6, 3}, content: w.content}
		if _, err := feed(r, next.commit(t)); err != nil {
			t.Fatal(err)
		}
		for _, m := range []Message{
			{Record{"service/a", service("a", "bad")}, Pair{5, 9}, 0},
			{Record{"service/new", service("new", "bad")}, Pair{5, 9}, 0},
			{Record{"service/b", service("b", "bad")}, Pair{5, 2}, 0},
			{Record{"service/a", nil}, Pair{5, 9}, 0},
		} {
			if r.Put(m.Key, m.Value, m.Epoch, m.Version) {
				t.Errorf("%s of %s was taken", m.Key, m.Pair)
			}
		}
		late := &writer{pair: Pair{5, 9}, content: map[string][]byte{}}
		if _, err := feed(r, late.commit(t)); !errors.Is(err, ErrOld) {
			t.Errorf("its commit: %v", err)
		}
		if topo, err := feed(r, next.commit(t)); err != nil || topo.Epoch != 6 {
			t.Errorf("the leader's own commit afterwards: %v", err)
		}
		if got := r.Highest(); got != (Pair{6, 3}) {
			t.Errorf("highest %s", got)
		}
	})
}

func TestReplicaRefusesBadCommits(t *testing.T) {
	r := NewReplica()
	w := &writer{pair: Pair{1, 1}, content: map[string][]byte{}}
	feed(r, w.put("service/a", service("a", "1")))
	good := w.commit(t)
	if _, err := r.Commit(good.Value, 2, 1); err == nil {
		t.Error("a commit whose headers say something else was taken")
	}
	if _, err := r.Commit([]byte(`{"version":1`), 1, 1); err == nil {
		t.Error("half a commit was taken")
	}
	bad := w.put("service/a", []byte(`{"name":"a","instances":[],"later":true}`))
	feed(r, bad)
	if _, err := feed(r, w.commit(t)); err == nil || errors.Is(err, ErrDigest) {
		t.Errorf("a record of a newer form: %v", err)
	}
	feed(r, w.put("service/a", service("a", "1")))
	if topo, err := feed(r, w.commit(t)); err != nil || len(topo.Config.Services) != 1 {
		t.Errorf("does not recover: %v", err)
	}
}

// TestReplicaConverges follows random histories, with late writes of fenced leaders and their repair, and compares an
// observer from the beginning with one that reads the compacted log only.
func TestReplicaConverges(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 50
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := &writer{pair: Pair{1, 0}, content: map[string][]byte{}}
		var log []Message
		var late []Message // a former leader's, still under way
		for range 30 {
			w.pair.Version++
			if rng.IntN(5) == 0 {
				w.pair.Epoch++
			}
			for range rng.IntN(4) {
				name := string(rune('a' + rng.IntN(5)))
				var value []byte
				if rng.IntN(3) > 0 {
					value = service(name, fmt.Sprint(rng.IntN(3)))
				}
				m := w.put("service/"+name, value)
				log = append(log, m)
				if rng.IntN(4) == 0 {
					late = append(late, Message{Record{m.Key, service(name, "late")}, Pair{w.pair.Epoch - 1, w.pair.Version + 3}, 0})
				}
			}
			log = append(log, w.commit(t))
			if len(late) > 0 && rng.IntN(3) == 0 {
				m := late[0]
				late = late[1:]
				log = append(log, m, w.put(m.Key, w.content[m.Key]), w.commit(t))
			}
		}
		want := DigestOf(w.records())
		follower, newcomer := NewReplica(), NewReplica()
		for i, m := range log {
			topo, err := feed(follower, m)
			if m.Key == KeyCommit && err != nil {
				t.Fatalf("seed %d: follower at %d: %v", seed, i, err)
			}
			if topo != nil {
				checkAssembly(t, follower, topo)
			}
		}
		last := map[string]int{}
		for i, m := range log {
			last[m.Key] = i
		}
		var topo *Topology
		for i, m := range log {
			if last[m.Key] != i && rng.IntN(2) == 0 {
				continue // compacted away
			}
			got, err := feed(newcomer, m)
			if i == len(log)-1 && err != nil {
				t.Fatalf("seed %d: newcomer at the end: %v", seed, err)
			}
			if got != nil {
				topo = got
			}
		}
		if topo.Digest != want {
			t.Errorf("seed %d: newcomer ends at another content", seed)
		}
		if got, _ := follower.Digest(); got != want {
			t.Errorf("seed %d: follower ends at another content", seed)
		}
	}
}

// checkAssembly compares the incremental Config with one decoded from scratch.
func checkAssembly(t *testing.T, r *Replica, topo *Topology) {
	t.Helper()
	var records []Record
	r.Records(func(rec Record) bool { records = append(records, rec); return true })
	want, err := DecodeRecords(records)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Services) != len(topo.Config.Services) {
		t.Fatalf("%d services, want %d", len(topo.Config.Services), len(want.Services))
	}
	if len(want.Services) > 0 && !reflect.DeepEqual(want.Services, topo.Config.Services) {
		t.Fatalf("incremental assembly differs:\n%s", cmp.Diff(want.Services, topo.Config.Services))
	}
}

func TestReplicaRanksOfDeclared(t *testing.T) {
	r := NewReplica()
	w := &writer{pair: Pair{1, 1}, content: map[string][]byte{}}
	put := func(u Upstream) {
		rec, err := EncodeUpstream(u)
		if err != nil {
			t.Fatal(err)
		}
		feed(r, w.put(rec.Key, rec.Value))
	}
	names := func() string {
		topo, err := feed(r, w.commit(t))
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, u := range topo.Config.Upstreams {
			s += u.Name
		}
		return s
	}
	put(Upstream{Name: "d", Origin: Derived})
	put(Upstream{Name: "x", Origin: Declared, Rank: 0})
	put(Upstream{Name: "a", Origin: Declared, Rank: 1})
	put(Upstream{Name: "c", Origin: Derived})
	if got := names(); got != "xacd" {
		t.Errorf("order %s", got)
	}
	w.pair.Version++
	put(Upstream{Name: "x", Origin: Declared, Rank: 2})
	put(Upstream{Name: "b", Origin: Derived})
	if got := names(); got != "axbcd" {
		t.Errorf("order after a change of rank %s", got)
	}
}

func TestReplicaSplitService(t *testing.T) {
	r := NewReplica()
	w := &writer{pair: Pair{1, 1}, content: map[string][]byte{}}
	put := func(s Service, parts int) int {
		rs, err := EncodeService(s, parts)
		if err != nil {
			t.Fatal(err)
		}
		keep := map[string]bool{}
		for _, rec := range rs {
			keep[rec.Key] = true
			feed(r, w.put(rec.Key, rec.Value))
		}
		for key := range w.content {
			if !keep[key] {
				feed(r, w.put(key, nil))
			}
		}
		topo, err := feed(r, w.commit(t))
		if err != nil {
			t.Fatal(err)
		}
		if got := topo.Config.Services[0].Instances; !reflect.DeepEqual(s.Instances, got) {
			t.Fatalf("with %d parts:\n%s", len(rs), cmp.Diff(s.Instances, got))
		}
		w.pair.Version++
		return len(rs)
	}
	parts := 0
	for _, n := range []int{10, 2000, 4000, 4001, 2000, 10} {
		parts = put(bigService(n), parts)
	}
	if parts != 1 || len(r.parts["big"]) != 1 || len(r.items) != 1 {
		t.Errorf("ends with %d parts, %d held, %d items", parts, len(r.parts["big"]), len(r.items))
	}
}
