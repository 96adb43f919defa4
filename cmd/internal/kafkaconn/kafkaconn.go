// Package kafkaconn turns the Kafka settings of a command into what every client of ours is built from: a Dialer for
// single connections and groups, a Transport for writers and administration, and the two topics with the settings that
// they need.
//
// It reads and writes no records.
package kafkaconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"github.com/upstrand/upstrand/cmd/internal/secret"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/cmd/internal/tlsconf"
)

// Options are the settings of the way to Kafka.
type Options struct {
	Brokers      []string
	TLS          bool
	Files        tlsconf.Files
	Mechanism    string
	User         string
	PasswordFile string

	TopicHeartbeat    string
	TopicUpstreamConf string
	Replication       int // -1: the broker's default
	Partitions        int // of the heartbeat topic, when we create it
}

// Flags declares the settings in their group.
func (o *Options) Flags(set *settings.Set) {
	g := set.Group("Kafka")
	g.Addresses(&o.Brokers, "kafka-brokers", "127.0.0.1:9092", "brokers to begin with; the others are learnt from them")
	g.Bool(&o.TLS, "kafka-tls", false, "speak TLS to the brokers")
	o.Files.Flags(set, g, "kafka-tls", "the broker")
	g.Choice(&o.Mechanism, "kafka-sasl-mechanism", "none", "how to log in", "none", "plain", "scram-sha-256", "scram-sha-512")
	g.String(&o.User, "kafka-sasl-user", "", "user to log in as")
	g.File(&o.PasswordFile, "kafka-sasl-password-file", "file with the password of that user; a line feed at its end does not count", secret.Check)
	set.Check(o.check)
}

// Use says which of the topics a command works with, and whether it creates them.
type Use struct{ Heartbeat, UpstreamConf, Create bool }

// TopicFlags declares the names of the topics and how they are created. Every command takes all of these flags, so that
// one set of arguments or variables does for a whole system; --help shows those that matter to the command.
func (o *Options) TopicFlags(set *settings.Set, use Use) {
	o.TopicHeartbeat, o.TopicUpstreamConf, o.Replication, o.Partitions = "topic_heartbeat", "topic_upstream_conf", -1, 6
	g := set.Group("Kafka")
	const allowed = "1 to 249 of a-z A-Z 0-9 . _ -"
	g.Match(&o.TopicHeartbeat, "topic-heartbeat", o.TopicHeartbeat, "topic of the beats", allowed, topicName)
	g.Match(&o.TopicUpstreamConf, "topic-upstream-conf", o.TopicUpstreamConf, "topic of the topology", allowed, topicName)
	g.Int(&o.Replication, "kafka-replication-factor", o.Replication, -1, 100, "replicas of a topic that is created; -1 is the broker's default")
	g.Int(&o.Partitions, "heartbeat-partitions", o.Partitions, 1, 1000,
		"partitions of the heartbeat topic when it is created; as many listeners can share the work")
	set.Check(func() settings.Problems {
		if o.Replication == 0 {
			return settings.Problems{{Flag: "kafka-replication-factor", Value: "0", Allowed: "allowed: a whole number from 1 to 100, or -1 for the broker's default"}}
		}
		return nil
	})
	set.Hide(!use.Heartbeat, "topic-heartbeat")
	set.Hide(!use.UpstreamConf, "topic-upstream-conf")
	set.Hide(!use.Create, "kafka-replication-factor")
	set.Hide(!use.Create || !use.Heartbeat, "heartbeat-partitions")
}

func topicName(s string) bool {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	return len(s) > 0 && len(s) < 250 && s != "." && s != ".." && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
}

func (o *Options) check() (ps settings.Problems) {
	if o.Files.Given() && !o.TLS {
		ps = append(ps, settings.Problem{Flag: "kafka-tls", Allowed: "needed when one of --kafka-tls-… is given"})
	}
	if o.Mechanism == "none" {
		if o.User != "" || o.PasswordFile != "" {
			ps = append(ps, settings.Problem{Flag: "kafka-sasl-mechanism", Allowed: "needed when a user or a password file is given"})
		}
		return ps
	}
	if o.User == "" {
		ps = append(ps, settings.Problem{Flag: "kafka-sasl-user", Allowed: "needed with --kafka-sasl-mechanism " + o.Mechanism})
	}
	if o.PasswordFile == "" {
		return append(ps, settings.Problem{Flag: "kafka-sasl-password-file", Allowed: "needed with --kafka-sasl-mechanism " + o.Mechanism})
	}
	if secret.Check(o.PasswordFile) != nil {
		return ps // which the file's own check says
	}
	if _, err := o.login(); err != nil {
		ps = append(ps, settings.Problem{Flag: "kafka-sasl-mechanism", Value: o.Mechanism, Allowed: "user and password must suit it: " + err.Error()})
	}
	return ps
}

// Conn is how this process reaches Kafka. Its parts are safe for concurrent use.
type Conn struct {
	Brokers   []string
	Dialer    *kafka.Dialer
	Transport *kafka.Transport
}

// Timeouts of the way to a broker. Requests carry deadlines of their own.
const (
	dialTimeout = 5 * time.Second
	keepAlive   = 15 * time.Second
	idleTimeout = 30 * time.Second
	metadataTTL = 5 * time.Second
)

// Connect loads certificates and password; it does not dial. clientID is what the brokers' logs call us.
func (o *Options) Connect(clientID string) (*Conn, error) {
	var conf *tls.Config
	if o.TLS {
		var err error
		if conf, err = o.Files.Load(); err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
	}
	login, err := o.login()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return &Conn{
		Brokers: o.Brokers,
		Dialer: &kafka.Dialer{
			ClientID: clientID, Timeout: dialTimeout, DialFunc: dial, TLS: conf, SASLMechanism: login,
		},
		Transport: &kafka.Transport{
			ClientID: clientID, DialTimeout: dialTimeout, IdleTimeout: idleTimeout, MetadataTTL: metadataTTL, TLS: conf, SASL: login,
		},
	}, nil
}

// dial opens a connection that is cut when the time to set it up runs out: kafka-go's login has no deadline, and a silent
// broker would hold it for ever. The context is kafka.Dialer's own of one set-up, which it cancels after a good end.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = conn.Close()
		}
	})
	return conn, nil
}

// Close drops idle connections.
func (c *Conn) Close() { c.Transport.CloseIdleConnections() }

// login builds the SASL mechanism; nil when none is asked for.
func (o *Options) login() (sasl.Mechanism, error) {
	if o.Mechanism == "none" || o.Mechanism == "" {
		return nil, nil
	}
	password, err := secret.FromFile(o.PasswordFile)
	if err != nil {
		return nil, err
	}
	switch o.Mechanism {
	case "plain":
		return plain.Mechanism{Username: o.User, Password: password}, nil
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, o.User, password)
	case "scram-sha-512":
		return scram.Mechanism(scram.SHA512, o.User, password)
	}
	return nil, fmt.Errorf("SASL mechanism %q is unknown", o.Mechanism)
}
