// Command with starts a real Kafka broker and a real MariaDB, runs a command with their addresses in
// UPSTRAND_TEST_KAFKA (host:port) and UPSTRAND_TEST_MYSQL_DSN (for github.com/go-sql-driver/mysql), and stops both again.
//
//	go run ./deploy/rig/with -- go test ./registry/...
//
// It is for tests only: the servers are empty, private to the command, and gone with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("usage: with -- COMMAND [ARGUMENT]…")
	}
	dir, err := os.MkdirTemp("", "upstrand-with")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the user mysql must get through
		return err
	}
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	kafkaDir, dbDir := filepath.Join(dir, "kafka"), filepath.Join(dir, "db")
	if err := errors.Join(os.Mkdir(kafkaDir, 0o755), os.Mkdir(dbDir, 0o755)); err != nil {
		return err
	}
	kafka, err := rig.StartKafka(starting, kafkaDir, rig.KafkaOptions{})
	if err != nil {
		return err
	}
	defer kafka.Close()
	db, err := rig.StartMariaDB(starting, dbDir, rig.MariaDBOptions{})
	if err != nil {
		return err
	}
	defer db.Close()
	// An interrupt reaches the command by itself, being in the same process group; it is waited for, so that the servers outlive it.
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "UPSTRAND_TEST_KAFKA="+kafka.Addr(), "UPSTRAND_TEST_MYSQL_DSN="+db.DSN())
	return cmd.Run()
}
