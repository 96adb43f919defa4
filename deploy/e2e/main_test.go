// Package e2e is the acceptance test of the whole system: every role runs as a process of its own, over real sockets, and faults
// are injected with package rig.
//
// By default the parts are the embedded ones and times are a tenth of the production times. UPSTRAND_REAL=1 runs the same
// tests over a real Kafka and a real MariaDB, UPSTRAND_FULL=1 does so at production times. UPSTRAND_KEEP=1 keeps the logs of
// passed tests too. It holds no unit tests: what a package promises is tested beside that package.
package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

var (
	binaries rig.Binaries
	parts    = rig.EmbeddedParts
	times    = rig.Scaled()
)

func TestMain(m *testing.M) {
	if spec := os.Getenv("E2E_INSTANCE"); spec != "" {
		os.Exit(beInstance(spec))
	}
	flag.Parse()
	if os.Getenv("UPSTRAND_REAL") != "" {
		parts = rig.RealParts
		times.Pulse = 200 * time.Millisecond // real servers take their time on a small machine
	}
	if os.Getenv("UPSTRAND_FULL") != "" {
		parts, times = rig.RealParts, rig.Full()
	}
	parallel := flag.Lookup("test.parallel")
	if parallel.Value.String() == fmt.Sprint(defaultParallel()) {
		n := worldsAtOnce
		if parts == rig.RealParts {
			n = 2 // a JVM and a MariaDB in each
		}
		_ = parallel.Value.Set(fmt.Sprint(n))
	}
	dir, err := os.MkdirTemp("", "upstrand-bin")
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build makes both programs as they are delivered, without cgo. UPSTRAND_BINARIES names a folder with ready ones.
func build(dir string) error {
	if ready := os.Getenv("UPSTRAND_BINARIES"); ready != "" {
		binaries = rig.Binaries{Upstrand: filepath.Join(ready, "upstrand"), UpstrandDev: filepath.Join(ready, "upstrand-dev")}
		return nil
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/upstrand", "../../cmd/upstrand-dev")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	binaries = rig.Binaries{Upstrand: filepath.Join(dir, "upstrand"), UpstrandDev: filepath.Join(dir, "upstrand-dev")}
	return nil
}

// instanceSpec is what a test hands to an instance that is a process of its own.
type instanceSpec struct {
	Broker   string
	Interval time.Duration
	Service  string
	ID       string
	Addr     string
}

// beInstance is this program as an instance of a service: it serves and beats until it is ended.
func beInstance(text string) int {
	var s instanceSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	e := rig.Endpoint{Addr: s.Broker}
	i, err := rig.StartInstance(s.Broker, e.Transport(), s.Interval, rig.Spec{Service: s.Service, ID: s.ID, At: s.Addr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ctx.Done()
	i.Goodbye()
	i.Shutdown()
	return 0
}
