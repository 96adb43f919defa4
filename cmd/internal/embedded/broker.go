// Package embedded holds the two servers that upstrand-dev brings along so that nobody has to install any: a broker that
// speaks Kafka's protocol on a real socket, and SQLite in place of MySQL.
//
// It is for development and tests. The production binary does not link it: neither server is replicated, and a broker
// whose machine loses power may lose what it acknowledged.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/upstrand/upstrand/cmd/internal/admin"
)

// Broker is a running broker of one node.
type Broker struct {
	cluster *kfake.Cluster
	addr    string
	lock    *os.File // nil without a data folder
}

// Settings of the broker. Its cleaner sleeps for an hour by default, so that nothing would ever be compacted; and it
// refuses session timeouts below 6 s, which tests that run ten times faster need.
const (
	cleanerBackoffMS  = "5000"
	minSessionTimeout = 100 * time.Millisecond
)

// StartBroker listens on addr, in memory when dir is empty, else with all its state in dir, which one process at a time
// may use. flag is named in the error when the address is taken.
func StartBroker(addr, flag, dir string, log zerolog.Logger) (*Broker, error) {
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	ln, err := admin.Listen(addr, flag, "broker", log)
	if err != nil {
		release(lock)
		return nil, err
	}
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return ln, nil }),
		kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": cleanerBackoffMS}),
		kfake.GroupMinSessionTimeout(minSessionTimeout),
		kfake.WithLogger(logger{log}),
	}
	if dir != "" {
		opts = append(opts, kfake.DataDir(dir))
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		release(lock)
		return nil, errors.Join(fmt.Errorf("start the embedded broker: %w", err), ln.Close())
	}
	return &Broker{cluster: cluster, addr: ln.Addr().String(), lock: lock}, nil
}

// Addr is where clients connect.
func (b *Broker) Addr() string { return b.addr }

// Close writes the state down and stops the broker. Connections of clients end.
func (b *Broker) Close(context.Context) error {
	b.cluster.Close()
	release(b.lock)
	return nil
}

// lockDir makes dir and takes it for this process: two brokers on the same files would ruin them.
func lockDir(dir string) (*os.File, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the broker's folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Clean(dir)+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the broker's folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		release(f)
		return nil, fmt.Errorf("the broker's folder %s is in use by another process (--data)", dir)
	}
	return f, nil
}

// release gives the lock up; closing the file does.
func release(f *os.File) {
	if f != nil {
		_ = f.Close()
	}
}

// logger passes on what the broker complains about. Its informational lines are one for each request.
type logger struct{ log zerolog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.log.Error().Str("from", "broker").Msgf(format, args...)
	case kfake.LogLevelWarn:
		l.log.Debug().Str("from", "broker").Msgf(format, args...)
	}
}
