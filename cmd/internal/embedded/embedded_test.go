package embedded

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/migrations"
)

func client(addr string) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(addr), Timeout: 5 * time.Second, Transport: &kafka.Transport{}}
}

func topics(t *testing.T, addr string) int {
	t.Helper()
	c := client(addr)
	defer c.Transport.(*kafka.Transport).CloseIdleConnections()
	m, err := c.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{"kept"}})
	if err != nil {
		t.Fatal(err)
	}
	return len(m.Topics[0].Partitions)
}

func start(t *testing.T, addr, dir string) *Broker {
	t.Helper()
	b, err := StartBroker(addr, "listen", dir, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(t.Context()) })
	return b
}

func TestStateIsKeptInItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "broker")
	b := start(t, "127.0.0.1:0", dir)
	c := client(b.Addr())
	res, err := c.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "kept", NumPartitions: 3, ReplicationFactor: 1}}})
	if err != nil || res.Errors["kept"] != nil {
		t.Fatal(err, res)
	}
	c.Transport.(*kafka.Transport).CloseIdleConnections()
	if _, err := StartBroker("127.0.0.1:0", "listen", dir, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second broker on the same folder: %v", err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := topics(t, start(t, b.Addr(), dir).Addr()); n != 3 {
		t.Errorf("after a restart the topic has %d partitions, want 3", n)
	}
}

func TestATakenPortNamesTheFlag(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, err = StartBroker(ln.Addr().String(), "broker-listen", "", zerolog.Nop())
	if err == nil || !strings.Contains(err.Error(), "--broker-listen") || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

func TestTheDatabaseCanBeMigrated(t *testing.T) {
	s := &SQLite{File: filepath.Join(t.TempDir(), "registry.db")}
	db, err := s.Open(zerolog.Nop(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := migrations.Up(t.Context(), db.DB, s.Dialect().String()); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Check(t.Context(), db.DB, s.Dialect().String()); err != nil {
		t.Error(err)
	}
}
