// Command upstrand is every role of the system, one a process, and the operators' commands. See `upstrand --help`.
//
// It works on a real Kafka and a real MySQL or MariaDB; the embedded ones are in upstrand-dev, and not linked here.
package main

import (
	"io"
	"os"

	"github.com/upstrand/upstrand/cmd/internal/cli"
	"github.com/upstrand/upstrand/cmd/internal/filecmd"
	"github.com/upstrand/upstrand/cmd/internal/mysqldb"
	"github.com/upstrand/upstrand/cmd/internal/ops"
	"github.com/upstrand/upstrand/cmd/internal/roles"
)

func main() {
	os.Exit(program(os.Environ(), os.Stdout, os.Stderr).Main(os.Args[1:], func() {}))
}

func program(environ []string, stdout, stderr io.Writer) *cli.Program {
	pr := &cli.Program{
		Name: "upstrand", Short: "heartbeats in, balanced traffic out",
		Long: `Upstrand turns the heartbeats of services into balanced traffic. Services beat onto a Kafka topic; listeners keep a
registry of who lives in MySQL; confgen makes the topology of it and publishes it on another topic; proxies follow that
topic and forward requests. Each role is a command, run as a process of its own, two or more of each if you like.`,
		Database: func() roles.Database { return &mysqldb.Options{} }, LogLevel: "info",
		Environ: environ, Stdout: stdout, Stderr: stderr,
	}
	pr.AddRoles()
	pr.Root().AddCommand(ops.Commands(filecmd.Check())...)
	pr.Root().AddCommand(filecmd.Explain(), filecmd.Simulate())
	return pr
}
