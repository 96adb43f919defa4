// Command control measures the control path on a real Kafka and a real MariaDB and prints the figures of the README's scale section:
//
//   - beats per second that one listener takes from Kafka to committed rows, with 100,000 distinct instances;
//   - what confgen's poll costs when nothing has changed, at that many rows;
//   - the time from a commit record to its being applied by a proxy, at 10,000 instances.
//
// It needs what `make test-real` needs. It measures whole processes on one machine, which broker, database, the load's producer
// and the role under test share; it is no benchmark of functions and no test.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

type settings struct {
	instances, rounds int
	published, joins  int
}

func main() {
	var s settings
	flag.IntVar(&s.instances, "instances", 100_000, "distinct instances that beat")
	flag.IntVar(&s.rounds, "rounds", 10, "beats of each instance in the measured backlog")
	flag.IntVar(&s.published, "published", 10_000, "instances of the published topology")
	flag.IntVar(&s.joins, "versions", 300, "versions whose way to the proxy is measured")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench-control:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) (err error) {
	dir, err := os.MkdirTemp("", "upstrand-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the user mysql must get through
		return err
	}
	program := filepath.Join(dir, "upstrand")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/upstrand")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build (run it from the top of the repository): %w\n%s", err, out)
	}
	// The compilers of the JVM that make a test's broker start fast make it slow afterwards.
	if err := os.Setenv("UPSTRAND_KAFKA_FAST", "1"); err != nil {
		return err
	}
	fmt.Printf("%d cores, Go %s, %s; Kafka, MariaDB and the producer on the same machine\n", runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly))
	w, err := rig.New(ctx, rig.Options{Parts: rig.RealParts, Times: rig.Full(), Binaries: rig.Binaries{Upstrand: program}, Dir: dir,
		MariaDB: rig.MariaDBOptions{Extra: []string{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M"}}})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := beats(ctx, w, s); err != nil {
		return fmt.Errorf("beats: %w", err)
	}
	if err := poll(ctx, w); err != nil {
		return fmt.Errorf("poll: %w", err)
	}
	return commits(ctx, dir, program, s)
}

// quantile of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func sortedCopy(d []time.Duration) []time.Duration {
	out := slices.Clone(d)
	slices.Sort(out)
	return out
}
