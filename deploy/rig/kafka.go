package rig

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Login is a user that the real broker accepts on its SASL listeners.
type Login struct{ User, Password string }

// JarsFolder is where the Kafka jars lie: UPSTRAND_KAFKA_JARS, or upstrand/kafka under the user's cache folder.
func JarsFolder() (string, error) {
	if dir := os.Getenv("UPSTRAND_KAFKA_JARS"); dir != "" {
		return dir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("rig: folder of the Kafka jars: %w", err)
	}
	return filepath.Join(cache, "upstrand", "kafka"), nil
}

// Kafka is a real Kafka broker and controller in one JVM, in KRaft mode, on loopback.
type Kafka struct {
	*Proc
	addr, saslAddr, tlsAddr string
	dir                     string
}

// KafkaOptions are the optional parts of a broker.
type KafkaOptions struct {
	Login *Login // adds a SASL_PLAINTEXT listener with PLAIN and SCRAM
	// KeyStore is a PEM file with private key and certificate chain; with it and Login there is a SASL_SSL listener too.
	KeyStore string
}

// StartKafka formats a broker's storage in dir and starts it; it is ready when this returns. Startup takes 2-4 s.
func StartKafka(ctx context.Context, dir string, opt KafkaOptions) (*Kafka, error) {
	jars, err := JarsFolder()
	if err != nil {
		return nil, err
	}
	if found, _ := filepath.Glob(filepath.Join(jars, "kafka_2.13-*.jar")); len(found) == 0 {
		return nil, fmt.Errorf("rig: no Kafka jars in %s: `make kafka-jars` fetches them", jars)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("rig: real Kafka needs Java 17: %w", err)
	}
	k := &Kafka{dir: dir}
	conf, err := k.configure(opt)
	if err != nil {
		return nil, err
	}
	classpath := filepath.Join(jars, "*")
	if err := format(ctx, java, classpath, conf, opt.Login); err != nil {
		return nil, err
	}
	k.Proc = &Proc{
		Name: "kafka", Path: java, Log: filepath.Join(dir, "kafka.log"),
		// The serial collector and the first compiler tier alone make a broker that starts in half the time and leaves
		// the cores to what is tested.
		Args: []string{"-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath, "kafka.Kafka", conf},
	}
	if os.Getenv("UPSTRAND_KAFKA_FAST") != "" { // for benchmarks: longer start, full speed
		k.Args = append([]string{"-Xmx2g", "-XX:+UseG1GC"}, k.Args[4:]...)
	}
	return k, k.Start(ctx)
}

// configure picks ports and writes server.properties.
func (k *Kafka) configure(opt KafkaOptions) (string, error) {
	var addrs [4]string
	for i := range addrs {
		var err error
		if addrs[i], err = FreeAddr(); err != nil {
			return "", err
		}
	}
	k.addr = addrs[0]
	listeners := "PLAINTEXT://" + addrs[0]
	protocols := "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
	var extra strings.Builder
	if opt.Login != nil {
		k.saslAddr = addrs[2]
		listeners += ",SASLPLAIN://" + addrs[2]
		protocols += ",SASLPLAIN:SASL_PLAINTEXT"
		saslLines(&extra, "saslplain", *opt.Login)
	}
	if opt.Login != nil && opt.KeyStore != "" {
		k.tlsAddr = addrs[3]
		listeners += ",SASLTLS://" + addrs[3]
		protocols += ",SASLTLS:SASL_SSL"
		saslLines(&extra, "sasltls", *opt.Login)
		fmt.Fprintf(&extra, "listener.name.sasltls.ssl.keystore.type=PEM\nlistener.name.sasltls.ssl.keystore.location=%s\n", opt.KeyStore)
	}
	conf := filepath.Join(k.dir, "server.properties")
	text := fmt.Sprintf(kafkaProperties, addrs[1], listeners, addrs[1], listeners, protocols, filepath.Join(k.dir, "log")) + extra.String()
	return conf, os.WriteFile(conf, []byte(text), 0o600)
}

func saslLines(b *strings.Builder, listener string, l Login) {
	fmt.Fprintf(b, "listener.name.%s.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n", listener)
	fmt.Fprintf(b, "listener.name.%s.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=\"%s\";\n",
		listener, l.User, l.Password)
	for _, m := range []string{"scram-sha-256", "scram-sha-512"} {
		fmt.Fprintf(b, "listener.name.%s.%s.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;\n", listener, m)
	}
}

// kafkaProperties takes: controller address, listeners, controller address, advertised listeners, protocol map, log folder.
// Sessions shorter than Kafka's own minimum of 6 s are allowed, for tests with scaled times, and compaction and retention look
// at their work every few seconds, so that a test sees them happen.
const kafkaProperties = `process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=%s
listeners=%s,CONTROLLER://%s
advertised.listeners=%s
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=%s
log.dirs=%s
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=200
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
auto.create.topics.enable=false
log.cleaner.backoff.ms=3000
log.cleaner.dedupe.buffer.size=4194304
log.retention.check.interval.ms=5000
log.segment.delete.delay.ms=1000
`

// format prepares the storage folder. It prints all settings on success, so its output is only shown on failure.
func format(ctx context.Context, java, classpath, conf string, login *Login) error {
	args := []string{"-XX:TieredStopAtLevel=1", "-cp", classpath, "kafka.tools.StorageTool", "format",
		"--cluster-id", "Fuo6RtmCQMGfNJx_kDq59w", "--config", conf, "--standalone", "--ignore-formatted"}
	if login != nil {
		for _, m := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, login.User, login.Password))
		}
	}
	if out, err := exec.CommandContext(ctx, java, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("rig: format Kafka storage: %w\n%s", err, lastBytes(out, 2000))
	}
	return nil
}

func lastBytes(b []byte, n int) []byte {
	if len(b) > n {
		return b[len(b)-n:]
	}
	return b
}

// Addr is where clients without credentials connect.
func (k *Kafka) Addr() string { return k.addr }

// SASLAddr is the listener that wants a login, "" without KafkaOptions.Login.
func (k *Kafka) SASLAddr() string { return k.saslAddr }

// TLSAddr is the listener that wants TLS and a login, "" without KafkaOptions.KeyStore.
func (k *Kafka) TLSAddr() string { return k.tlsAddr }

// Start starts a stopped broker on its port and data and waits until it answers.
func (k *Kafka) Start(ctx context.Context) error {
	if err := k.Proc.Start(); err != nil {
		return err
	}
	return k.Await(ctx, "the broker", func() error { return brokerAnswers(ctx, k.addr) })
}

// Stop ends the broker as an operator would.
func (k *Kafka) Stop(context.Context) error {
	// A JVM that was told to end by a signal reports 143, which is no failure.
	if err := k.Term(30 * time.Second); err != nil && k.Alive() {
		return err
	}
	return nil
}

// reachable dials addr once.
func reachable(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
