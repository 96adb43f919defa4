package kafkaconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// The pool of kafka-go's Transport ends its goroutines some time after its connections were dropped, and kfake's
// connections end with their clients.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/segmentio/kafka-go.(*connPool).discover"),
		goleak.IgnoreAnyFunction("github.com/segmentio/kafka-go.(*conn).run"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read"),
		goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).write"))
}

const secretText = "correct-horse-battery"

func broker(t *testing.T, opts ...kfake.Opt) (*kfake.Cluster, string) {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, c.ListenAddrs()[0]
}

func parse(t *testing.T, args ...string) (*Options, *settings.Set) {
	t.Helper()
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	set, o := settings.NewSet(fs), &Options{}
	o.Flags(set)
	o.TopicFlags(set, Use{Heartbeat: true, UpstreamConf: true, Create: true})
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, set
}

func connect(t *testing.T, args ...string) (*Options, *Conn) {
	t.Helper()
	o, set := parse(t, args...)
	if err := set.Problems().Err(); err != nil {
		t.Fatal(err)
	}
	conn, err := o.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return o, conn
}

func passwordFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secretText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTopicsAreCreatedWithWhatTheyNeed(t *testing.T) {
	_, addr := broker(t)
	o, conn := connect(t, "--kafka-brokers", addr)
	topics := NewTopics(conn, zerolog.Nop())
	for _, topic := range []Topic{o.HeartbeatTopic(), o.UpstreamConfTopic()} {
		created, err := topics.Ensure(t.Context(), topic)
		if err != nil || !created {
			t.Fatalf("%s: created %v, error %v", topic.Name, created, err)
		}
		found, err := topics.settings(t.Context(), topic.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range topic.Settings {
			if found[s.Name] != s.Value {
				t.Errorf("%s: %s is %q, want %q", topic.Name, s.Name, found[s.Name], s.Value)
			}
		}
		if n := visible(t, topics, topic.Name); n != topic.Partitions {
			t.Errorf("%s has %d partitions, want %d", topic.Name, n, topic.Partitions)
		}
		var log bytes.Buffer
		topics := NewTopics(conn, zerolog.New(&log))
		if created, err := topics.Ensure(t.Context(), topic); created || err != nil || log.Len() > 0 {
			t.Errorf("%s, what we made ourselves: created %v, error %v, log %s", topic.Name, created, err, log.String())
		}
	}
}

// visible waits until the cached metadata shows the topic.
func visible(t *testing.T, ts *Topics, name string) int {
	t.Helper()
	for {
		n, err := ts.partitions(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return n
		}
	}
}

func TestExistingTopicsAreChecked(t *testing.T) {
	const beats, conf = "topic_heartbeat", "topic_upstream_conf"
	good := map[string]string{"cleanup.policy": "compact", "max.message.bytes": "8388608"}
	cases := map[string]struct {
		topic      string
		partitions int32
		configs    map[string]string
		broken     []string
		warned     []string
	}{
		"as needed": {topic: conf, partitions: 1, configs: good},
		"conf with two partitions": {topic: conf, partitions: 2, configs: good,
			broken: []string{"it has 2 partitions, should have 1"}},
		"conf not compacted": {topic: conf, partitions: 1, configs: map[string]string{"cleanup.policy": "delete", "max.message.bytes": "8388608"},
			broken: []string{`cleanup.policy is "delete"`}},
		"conf compacted and deleted": {topic: conf, partitions: 1, configs: map[string]string{"cleanup.policy": "compact,delete", "max.message.bytes": "8388608"},
			broken: []string{`cleanup.policy is "compact,delete"`}},
		"conf with small messages and all else": {topic: conf, partitions: 3, configs: map[string]string{"max.message.bytes": "1048588"},
			broken: []string{"it has 3 partitions", "cleanup.policy", `max.message.bytes is "1048588", should be 8388608 at least`}},
		"conf that forgets removals early": {topic: conf, partitions: 1,
			configs: map[string]string{"cleanup.policy": "compact", "max.message.bytes": "9000000", "delete.retention.ms": "1000"},
			warned:  []string{"delete.retention.ms"}},
		"beats in another number of partitions": {topic: beats, partitions: 12, configs: map[string]string{"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"},
			warned: []string{"it has 12 partitions, should have 6"}},
		"beats with sender's time and short retention": {topic: beats, partitions: 6, configs: map[string]string{"retention.ms": "1000"},
			warned: []string{"retention.ms", "message.timestamp.type"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, addr := broker(t)
			if err := cluster.CreateTopic(c.topic, c.partitions, c.configs); err != nil {
				t.Fatal(err)
			}
			o, conn := connect(t, "--kafka-brokers", addr)
			topic := o.HeartbeatTopic()
			if c.topic == conf {
				topic = o.UpstreamConfTopic()
			}
			var log bytes.Buffer
			_, err := NewTopics(conn, zerolog.New(&log)).Ensure(t.Context(), topic)
			var broken *BrokenTopicError
			if errors.As(err, &broken) != (c.broken != nil) || (c.broken == nil && err != nil) {
				t.Fatalf("error %v", err)
			}
			if broken != nil && len(broken.Wrong) != len(c.broken) {
				t.Errorf("error %v, want %d things wrong", err, len(c.broken))
			}
			for _, want := range c.broken {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
			for _, want := range c.warned {
				if !strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), want) {
					t.Errorf("log %s, want %q in it", log.String(), want)
				}
			}
			if c.warned == nil && log.Len() > 0 {
				t.Errorf("warned without need: %s", log.String())
			}
		})
	}
}

func TestABrokenTopicEndsTheWait(t *testing.T) {
	cluster, addr := broker(t)
	if err := cluster.CreateTopic("topic_upstream_conf", 2, nil); err != nil {
		t.Fatal(err)
	}
	o, conn := connect(t, "--kafka-brokers", addr)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := NewTopics(conn, zerolog.Nop()).Await(ctx, o.UpstreamConfTopic())
	var broken *BrokenTopicError
	if !errors.As(err, &broken) {
		t.Errorf("error %v", err)
	}
}

func TestADeletedTopicComesBack(t *testing.T) {
	cluster, addr := broker(t)
	o, conn := connect(t, "--kafka-brokers", addr)
	conn.Transport.MetadataTTL = 20 * time.Millisecond
	topics := NewTopics(conn, zerolog.Nop())
	if _, err := topics.Ensure(t.Context(), o.UpstreamConfTopic()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- topics.Keep(ctx, o.UpstreamConfTopic(), 5*time.Millisecond) }()
	if err := cluster.DeleteTopic(o.TopicUpstreamConf); err != nil {
		t.Fatal(err)
	}
	limit := time.After(10 * time.Second)
	for cluster.TopicInfo(o.TopicUpstreamConf) == nil {
		select {
		case <-limit:
			t.Fatal("the topic did not come back")
		case <-time.After(5 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLogin(t *testing.T) {
	file := passwordFile(t)
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(m, func(t *testing.T) {
			_, addr := broker(t, kfake.EnableSASL(), kfake.Superuser(m, "upstrand", secretText))
			o, conn := connect(t, "--kafka-brokers", addr, "--kafka-sasl-mechanism", strings.ToLower(m),
				"--kafka-sasl-user", "upstrand", "--kafka-sasl-password-file", file)
			if _, err := NewTopics(conn, zerolog.Nop()).Ensure(t.Context(), o.HeartbeatTopic()); err != nil {
				t.Errorf("transport: %v", err)
			}
			c, err := conn.Dialer.DialContext(t.Context(), "tcp", addr)
			if err != nil {
				t.Fatalf("dialer: %v", err)
			}
			defer c.Close()
			if _, err := c.Brokers(); err != nil {
				t.Errorf("dialer: %v", err)
			}
			if text := fmt.Sprintf("%+v %v", o, o); strings.Contains(text, secretText) {
				t.Error("the options hold the password")
			}
		})
	}
}

func TestASilentBrokerEndsALogin(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(secretText), 0o600); err != nil {
		t.Fatal(err)
	}
	_, conn := connect(t, "--kafka-brokers", ln.Addr().String(), "--kafka-sasl-mechanism", "plain", "--kafka-sasl-user", "me",
		"--kafka-sasl-password-file", password)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := conn.Dialer.DialContext(ctx, "tcp", ln.Addr().String())
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("logged in to a broker that says nothing")
		}
	case <-time.After(5 * time.Second):
		t.Error("the login outlived its time")
	}
}

func TestAWrongPasswordDoesNotShow(t *testing.T) {
	_, addr := broker(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "upstrand", "another"))
	o, conn := connect(t, "--kafka-brokers", addr, "--kafka-sasl-mechanism", "plain", "--kafka-sasl-user", "upstrand", "--kafka-sasl-password-file", passwordFile(t))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := NewTopics(conn, zerolog.Nop()).Ensure(ctx, o.HeartbeatTopic())
	if err == nil || strings.Contains(err.Error(), secretText) {
		t.Errorf("error %v", err)
	}
}

func TestSettingsThatNeedEachOther(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		want string
	}{
		"user without mechanism":   {[]string{"--kafka-sasl-user=u"}, "--kafka-sasl-mechanism"},
		"mechanism without user":   {[]string{"--kafka-sasl-mechanism=plain", "--kafka-sasl-password-file=" + passwordFile(t)}, "--kafka-sasl-user"},
		"mechanism without file":   {[]string{"--kafka-sasl-mechanism=plain", "--kafka-sasl-user=u"}, "--kafka-sasl-password-file"},
		"empty password":           {[]string{"--kafka-sasl-mechanism=plain", "--kafka-sasl-user=u", "--kafka-sasl-password-file=" + empty}, "is empty"},
		"files without tls":        {[]string{"--kafka-tls-server-name=k"}, "--kafka-tls"},
		"certificate without key":  {[]string{"--kafka-tls", "--kafka-tls-cert=" + empty}, "needed with --kafka-tls-cert"},
		"authorities that are not": {[]string{"--kafka-tls", "--kafka-tls-ca=" + empty}, "holds no certificate"},
		"topic with a blank":       {[]string{"--topic-heartbeat=a b"}, "--topic-heartbeat"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, set := parse(t, c.args...)
			if err := set.Problems().Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

var _ kafka.RoundTripper = (*kafka.Transport)(nil)
