package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/upstrand/upstrand/heartbeat"
)

// roleEnv makes the test binary play a part other than the tests, as a process of its own.
const roleEnv = "UPSTRAND_SIDECAR_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "child":
		playChild(false)
	case "stubborn":
		playChild(true)
	case "sidecar":
		playSidecar()
	default:
		goleak.VerifyTestMain(m)
	}
}

// playChild is a service that tells every signal with the time. It exits with code 7 on SIGTERM or SIGINT unless it is
// stubborn, and with code 3 on SIGUSR2; a stubborn one has a process of its own, in its group.
func playChild(stubborn bool) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(append([]os.Signal(nil), passing...), ending...)...)
	if stubborn {
		grandchild := exec.Command("sleep", "600")
		if err := grandchild.Start(); err != nil {
			panic(err)
		}
		fmt.Println("grandchild", grandchild.Process.Pid)
	}
	fmt.Println("ready", os.Getpid())
	for sig := range signals {
		fmt.Println(sig, time.Now().UnixNano())
		switch {
		case sig == syscall.SIGUSR2:
			os.Exit(3)
		case !stubborn && (sig == syscall.SIGTERM || sig == syscall.SIGINT):
			os.Exit(7)
		}
	}
}

// playSidecar runs a sidecar over a child with the signals of the process, as main does.
func playSidecar() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := New(Config{
		Sender: heartbeat.Config{Brokers: strings.Split(os.Getenv("BROKERS"), ","), GoodbyeTimeout: time.Second,
			Beat: heartbeat.Beat{Service: "orders", ID: "a7", IP: "127.0.0.1", Port: 8080, Interval: heartbeat.Duration(100 * time.Millisecond)}},
		Check: func(context.Context) error { return nil }, Rise: 1,
		LeaveWait: 300 * time.Millisecond,
		Command:   []string{os.Args[0]}, Env: append(os.Environ(), roleEnv+"=child"),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	err = s.Run(ctx)
	var exit *ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(ExitCode(err))
}
