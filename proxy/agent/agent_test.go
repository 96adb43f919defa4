package agent

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/confgen/topology"
)

func TestFollows(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 3))
	a := w.start(nil)
	a.sink.isAt(t, 1, 3)
	if err := a.Ready(); err != nil {
		t.Error(err)
	}
	w.publish(config("orders", 4))
	a.sink.isAt(t, 2, 4)
	w.publish(config("users", 1))
	a.sink.isAt(t, 3, 1)
	if s := a.sink.last().Config.Services; len(s) != 1 || s[0].Name != "users" {
		t.Errorf("tombstones were not read: %+v", s)
	}
	r := a.Report()
	if r["topology_version"] != "3" || r["topology_epoch"] != "1" || r["topology_source"] != "topic" || r["last_error"] != "" {
		t.Errorf("%v", r)
	}
	if r["topology_digest"] != a.sink.last().Digest.String() {
		t.Errorf("digest %s", r["topology_digest"])
	}
	for _, key := range []string{"topology_age_ms", "commit_age_ms"} {
		if ms, err := strconv.Atoi(r[key]); err != nil || ms < 0 || ms > 5000 {
			t.Errorf("%s: %q", key, r[key])
		}
	}
}

// TestIdleIsNoError: a long poll that brings nothing is the ordinary case.
func TestIdleIsNoError(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	during(t, "no error while nothing comes", 300*time.Millisecond, func() bool { return a.Report()["last_error"] == "" && a.current() == 1 })
}

// TestNotReadyOnAnEmptyTopic: records without a commit are no topology.
func TestNotReadyOnAnEmptyTopic(t *testing.T) {
	w := newWorld(t)
	a := w.start(nil)
	w.version++
	w.produce(w.changes(config("orders", 1))...)
	during(t, "nothing in force before a commit", 200*time.Millisecond, func() bool { return a.Ready() != nil && a.sink.count() == 0 })
	w.produce(w.commit(nil))
	a.sink.isAt(t, 1, 1)
}

// TestManyVersionsAreOneApply: what was waiting when the agent starts is applied once, at the last commit.
func TestManyVersionsAreOneApply(t *testing.T) {
	w := newWorld(t)
	for n := range 50 {
		w.publish(config("orders", n+1))
	}
	// In one fetch, and in many.
	for _, bytes := range []int{16 << 20, 1} {
		a := w.start(func(c *Config) { c.MaxFetch = bytes })
		a.sink.isAt(t, 50, 50)
		if n := a.sink.count(); n != 1 {
			t.Errorf("%d topologies applied with fetches of %d bytes, want the last alone", n, bytes)
		}
	}
	// Half a batch of a leader that died after the last commit must not keep the agent from that commit.
	w.version++
	w.produce(w.changes(config("orders", 60))[0])
	b := w.start(nil)
	b.sink.isAt(t, 50, 50)
}

// TestBrokenLastCommit: when the newest commit can't be reproduced, an older one of the log is not put in its place.
func TestBrokenLastCommit(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	w.publish(config("orders", 2))
	w.version++
	w.produce(append(w.changes(config("orders", 3)), w.commit(func(c *topology.Commit) { c.Count++ }))...)
	a := w.start(nil)
	eventually(t, "the mismatch is reported", func() bool { return strings.Contains(a.Report()["last_error"], "digest") })
	during(t, "nothing is in force", 300*time.Millisecond, func() bool { return a.sink.count() == 0 && a.Ready() != nil })
	w.produce(w.commit(nil))
	a.sink.isAt(t, 3, 3)
}

// TestRepeatedCommitAppliesNothing, but shows that the leader lives.
func TestRepeatedCommitAppliesNothing(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	a.mu.Lock()
	seen := a.Agent.commit
	a.mu.Unlock()
	w.produce(w.commit(nil))
	eventually(t, "the repeated commit is seen", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.Agent.commit.After(seen) })
	if n := a.sink.count(); n != 1 {
		t.Errorf("%d applied", n)
	}
	w.epoch = 2 // a new leader's first act, the same content
	w.produce(w.commit(nil))
	eventually(t, "the new epoch is reported", func() bool { return a.Report()["topology_epoch"] == "2" })
}

// TestDigestMismatch: what can't be reproduced is not applied; it is reported, and the log is read again from its start.
func TestDigestMismatch(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	w.version++
	change := w.changes(config("orders", 2))
	w.produce(append(change, w.commit(func(c *topology.Commit) { c.Digest = topology.Digest{1} }))...)
	eventually(t, "the mismatch is reported", func() bool { return strings.Contains(a.Report()["last_error"], "digest") })
	if a.sink.count() != 1 || a.Ready() != nil || a.current() != 0 {
		t.Errorf("the last good topology must stay in force: %d applied, %v", a.sink.count(), a.Ready())
	}
	began := time.Now()
	eventually(t, "it reads again", func() bool { return counter(t, a.metrics.rereads) >= 2 })
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("two readings within %v, want at least 200 ms between them", took)
	}
	w.produce(w.commit(nil)) // the leader repairs what it wrote
	a.sink.isAt(t, 2, 2)
	eventually(t, "the error is gone", func() bool { return a.Report()["last_error"] == "" })
}

// TestLostRecordIsFoundByReadingAgain: an agent whose copy is wrong gets right by itself.
func TestLostRecordIsFoundByReadingAgain(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	// A stranger's record with an old pair is ignored by who holds a newer one, but it is in the log.
	w.version++
	c := w.changes(config("orders", 2))
	w.produce(c...)
	w.produce(w.commit(func(c *topology.Commit) { c.Count++ }))
	eventually(t, "reported", func() bool { return a.Report()["last_error"] != "" })
	w.produce(w.commit(nil))
	a.sink.isAt(t, 2, 2)
}

// TestOlderLeaderIsIgnored: a commit and records of an older epoch change nothing.
func TestOlderLeaderIsIgnored(t *testing.T) {
	w := newWorld(t)
	w.epoch, w.version = 5, 9
	w.publish(config("orders", 2))
	a := w.start(nil)
	a.sink.isAt(t, 10, 2)
	good := w.records
	w.epoch, w.version = 4, 99
	w.publish(config("orders", 7))
	w.records = good
	during(t, "the older leader's version is not in force", 200*time.Millisecond, func() bool { return a.sink.last().Version == 10 })
	w.epoch, w.version = 5, 10
	w.publish(config("orders", 3))
	a.sink.isAt(t, 11, 3)
}

// TestBrokerRestart: the agent outlives the broker and goes on where it was.
func TestBrokerRestart(t *testing.T) {
	dir := t.TempDir()
	port := freePort(t)
	run := func() *kfake.Cluster {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(dir), kfake.SeedTopics(1, "conf"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	broker := run()
	w := &world{t: t, topic: "conf", addr: fmt.Sprint("127.0.0.1:", port), trans: &kafka.Transport{}, records: map[string][]byte{}, epoch: 1}
	w.client = &kafka.Client{Addr: kafka.TCP(w.addr), Transport: w.trans, Timeout: 5 * time.Second}
	t.Cleanup(w.trans.CloseIdleConnections)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	broker.Close()
	eventually(t, "the loss is reported", func() bool { return a.Report()["last_error"] != "" })
	if a.Ready() != nil {
		t.Error("a proxy without Kafka is still ready")
	}
	broker = run()
	defer broker.Close()
	w.trans.CloseIdleConnections()
	w.version++
	records := append(w.changes(config("orders", 2)), w.commit(nil))
	eventually(t, "the broker takes records again", func() bool { return w.tryProduce(records...) == nil })
	a.sink.isAt(t, 2, 2)
	eventually(t, "the error is gone", func() bool { return a.Report()["last_error"] == "" })
	if n := counter(t, a.metrics.rereads); n != 0 {
		t.Errorf("read from the start %v times, want it to go on where it was", n)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestStartWithoutKafka serves the last good topology after TopicWait, and takes over from the topic when it answers.
func TestStartWithoutKafka(t *testing.T) {
	file := stateFile(t)
	w := newWorld(t)
	w.epoch = 2
	w.publish(config("orders", 3))
	a := w.start(func(c *Config) { c.StateFile = file })
	a.sink.isAt(t, 1, 3)
	a.stop()

	var log bytes.Buffer
	began := time.Now()
	away := w.start(func(c *Config) {
		c.StateFile, c.Brokers = file, []string{fmt.Sprint("127.0.0.1:", freePort(t))}
		c.Logger = zerolog.New(zerolog.SyncWriter(&log))
	})
	away.sink.isAt(t, 1, 3)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("served from the file after %v, before TopicWait", took)
	}
	if r := away.Report(); r["topology_source"] != "file" || r["topology_epoch"] != "2" || r["last_error"] == "" {
		t.Errorf("%v", r)
	}
	if away.sink.last().Digest != a.sink.last().Digest || away.Ready() != nil {
		t.Error("the file holds another topology")
	}
	away.stop()
	if !strings.Contains(log.String(), "age_ms") {
		t.Errorf("the age is not said: %s", log.String())
	}

	w.publish(config("orders", 5))
	back := w.start(func(c *Config) { c.StateFile = file })
	back.sink.isAt(t, 2, 5)
	if n := back.sink.count(); n != 1 {
		t.Errorf("%d applied: with the topic there the file is not needed", n)
	}
}

// TestFailedSaveIsTriedAgain, without anything new to save.
func TestFailedSaveIsTriedAgain(t *testing.T) {
	file := filepath.Join(stateFile(t), "later")
	w := newWorld(t)
	w.publish(config("orders", 3))
	failed := make(chan struct{})
	var first sync.Once
	a := w.start(func(c *Config) {
		c.StateFile = file
		c.Logger = zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) {
			if strings.Contains(message, "is not on disk") {
				first.Do(func() { close(failed) })
			}
		}))
	})
	a.sink.isAt(t, 1, 3)
	<-failed
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	eventually(t, "saved", func() bool { _, err := readFile(file); return err == nil })
}

// TestARetiredAgentLeavesTheFile to another process, and brings it up to date when it has it again.
func TestARetiredAgentLeavesTheFile(t *testing.T) {
	file := stateFile(t)
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(func(c *Config) { c.StateFile = file })
	a.sink.isAt(t, 1, 1)
	saved := func(version int64) func() bool {
		return func() bool { got, err := readFile(file); return err == nil && got.Version == version }
	}
	eventually(t, "saved", saved(1))
	a.Retire()
	w.publish(config("orders", 2))
	a.sink.isAt(t, 2, 2)
	eventually(t, "the save is passed over", a.missed.Load)
	if !saved(1)() {
		t.Error("a retired agent wrote the file")
	}
	a.Keep()
	eventually(t, "saved again", saved(2))
}

// TestFileThenTopic: a topic that answers late wins over the file, and an older one does not.
func TestFileThenTopic(t *testing.T) {
	file := stateFile(t)
	old := &topology.Topology{Version: 7, Epoch: 3, At: time.Now().Add(-time.Hour), Config: config("orders", 2)}
	if err := writeFile(file, old); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	a := w.start(func(c *Config) { c.StateFile = file })
	a.sink.isAt(t, 7, 2)
	w.epoch, w.version = 3, 5
	w.publish(config("orders", 1)) // version 6 of epoch 3: below the file's
	eventually(t, "reported as older", func() bool { return strings.Contains(a.Report()["last_error"], "older") })
	w.epoch, w.version = 4, 7
	w.publish(config("orders", 4))
	a.sink.isAt(t, 8, 4)
	if a.Report()["topology_source"] != "topic" {
		t.Error(a.Report())
	}
}

// TestDamagedFile: no crash, a clear word, and the topic serves.
func TestDamagedFile(t *testing.T) {
	good := stateFile(t)
	if err := writeFile(good, &topology.Topology{Version: 1, Epoch: 1, At: time.Now(), Config: config("orders", 2)}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)/2], "one bit": flip(whole, len(whole)-20), "no ours": []byte("hello\nworld"),
		"head damaged": flip(whole, len(fileMagic)+3),
	} {
		t.Run(name, func(t *testing.T) {
			file := stateFile(t)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readFile(file); err == nil {
				t.Fatal("read without complaint")
			}
			w := newWorld(t)
			var log bytes.Buffer
			a := w.start(func(c *Config) {
				c.StateFile, c.TopicWait = file, 10*time.Millisecond
				c.Logger = zerolog.New(zerolog.SyncWriter(&log))
			})
			during(t, "nothing is in force", 60*time.Millisecond, func() bool { return a.sink.count() == 0 })
			w.publish(config("orders", 1))
			a.sink.isAt(t, 1, 1)
			a.stop()
			if !strings.Contains(log.String(), "can't be used") {
				t.Errorf("log: %s", log.String())
			}
			if _, err := readFile(file); err != nil {
				t.Errorf("the damaged file was not replaced: %v", err)
			}
		})
	}
}

func flip(b []byte, i int) []byte {
	c := bytes.Clone(b)
	c[i] ^= 1
	return c
}

// TestApplyRefused: the last one stays, and the refusal is reported until something better comes.
func TestApplyRefused(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	a.sink.mu.Lock()
	a.sink.refuse = errRefused
	a.sink.mu.Unlock()
	w.publish(config("orders", 2))
	eventually(t, "reported", func() bool { return a.Report()["last_error"] == errRefused.Error() })
	during(t, "it stays reported", 150*time.Millisecond, func() bool { return a.Report()["last_error"] == errRefused.Error() })
	if a.Report()["topology_version"] != "1" {
		t.Error(a.Report())
	}
	a.sink.mu.Lock()
	a.sink.refuse = nil
	a.sink.mu.Unlock()
	w.publish(config("orders", 3))
	a.sink.isAt(t, 3, 3)
}

// TestBadRecords: what is no record of ours keeps the last good topology, and is healed by the leader's next commit.
func TestBadRecords(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(nil)
	a.sink.isAt(t, 1, 1)
	w.produce(kafka.Record{Key: kafka.NewBytes([]byte("service/orders")), Value: kafka.NewBytes([]byte("{}"))})
	eventually(t, "a record without headers is reported", func() bool { return strings.Contains(a.Report()["last_error"], "header") })
	w.publish(config("orders", 2))
	a.sink.isAt(t, 2, 2)
	eventually(t, "the error is gone", func() bool { return a.Report()["last_error"] == "" })
}

// TestStopIsQuick, in a long poll and without a broker.
func TestStopIsQuick(t *testing.T) {
	w := newWorld(t)
	w.publish(config("orders", 1))
	a := w.start(func(c *Config) { c.MaxWait = 20 * time.Second })
	a.sink.isAt(t, 1, 1)
	for name, r := range map[string]*running{
		"long poll": a,
		"no broker": w.start(func(c *Config) { c.Brokers = []string{fmt.Sprint("127.0.0.1:", freePort(t))} }),
	} {
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: stopped after %v", name, took)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(Config{})
	for _, part := range []string{"brokers", "topic", "apply"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not speak of %s", err, part)
		}
	}
}
