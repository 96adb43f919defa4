// Command upstrand-dev is Upstrand without anything to install: `upstrand-dev` alone runs all roles in one process over an
// embedded Kafka-protocol broker and an embedded registry, with demo services to watch. Its subcommands are those of
// upstrand, with a SQLite file in place of MySQL, and `broker`, the embedded broker alone.
//
// It is for development and tests: the embedded servers are not replicated.
package main

import (
	"io"
	"os"

	"github.com/upstrand/upstrand/cmd/internal/cli"
	"github.com/upstrand/upstrand/cmd/internal/embedded"
	"github.com/upstrand/upstrand/cmd/internal/filecmd"
	"github.com/upstrand/upstrand/cmd/internal/ops"
	"github.com/upstrand/upstrand/cmd/internal/roles"
)

func main() {
	var litter litter
	os.Exit(program(&litter, os.Environ(), os.Stdout, os.Stderr).Main(os.Args[1:], litter.remove))
}

func program(l *litter, environ []string, stdout, stderr io.Writer) *cli.Program {
	pr := &cli.Program{
		Name: "upstrand-dev", Short: "Upstrand without anything to install",
		Database: func() roles.Database { return &embedded.SQLite{} }, LogLevel: "info",
		Environ: environ, Stdout: stdout, Stderr: stderr,
	}
	pr.SetRoot(everything(pr, l))
	pr.AddRoles()
	pr.Root().AddCommand(pr.Cobra(broker()), pr.Cobra(demoService()))
	pr.Root().AddCommand(ops.Commands(filecmd.Check())...)
	pr.Root().AddCommand(filecmd.Explain(), filecmd.Simulate())
	return pr
}
