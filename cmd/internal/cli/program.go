// Package cli is the command line of both binaries: the commands of the roles, their help, and the way from arguments
// and environment to a running process and an exit code.
//
// It contains no role and no operators' command; upstrand and upstrand-dev differ in the database that they plug in and
// in the commands that they add.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/cmd/internal/roles"
	"github.com/upstrand/upstrand/cmd/internal/rungroup"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Program is one binary.
type Program struct {
	Name     string
	Short    string
	Long     string
	Database func() roles.Database // how the roles reach the registry's database
	LogLevel string                // default of --log-level

	Environ        []string
	Stdout, Stderr io.Writer

	root    *cobra.Command
	patient atomic.Bool // a second signal does not end the process
}

// Main is Run for a whole process: the first SIGINT or SIGTERM ends what runs in good order, a second one calls tidy and
// exits at once.
func (pr *Program) Main(args []string, tidy func()) int {
	ctx, stop := rungroup.Signals(context.Background(), func(code int) {
		if !pr.patient.Load() {
			tidy()
			os.Exit(code)
		}
	})
	defer stop()
	return pr.Run(ctx, args)
}

// Root returns the command that all others are added to. Unless SetRoot gave another, it only shows its help.
func (pr *Program) Root() *cobra.Command {
	if pr.root == nil {
		pr.SetRoot(&cobra.Command{
			Use: pr.Name, Short: pr.Short, Long: pr.Long,
			RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		})
	}
	return pr.root
}

// keepOrder is called once: cobra keeps in a package variable whether commands are sorted. They stand in the order in which
// a newcomer needs them.
var keepOrder = sync.OnceFunc(func() { cobra.EnableCommandSorting = false })

// SetRoot makes cmd the root, for a program that does something without a subcommand.
func (pr *Program) SetRoot(cmd *cobra.Command) {
	keepOrder()
	cmd.SilenceErrors, cmd.SilenceUsage, cmd.Args = true, true, args.Command
	// Here, so that commands without groups of their own take the environment too.
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := settings.ApplyEnv(cmd.Flags(), pr.Environ).Err(); err != nil {
			return err
		}
		if _, own := cmd.Annotations[process]; !own && settings.TakesEnv(cmd.Flags()) {
			pr.unknown(func(text string) { fmt.Fprintf(pr.Stderr, "warning: %s\n", text) })
		}
		return nil
	}
	cmd.SetHelpFunc(help)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, nil); return nil })
	cmd.SetFlagErrorFunc(suggestFlag)
	cmd.CompletionOptions.HiddenDefaultCmd = true
	pr.root = cmd
}

// ExitError is an error that asks for an exit code of its own, such as that of a child process.
type ExitError struct {
	Code int
	Err  error // nil: nothing is said
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Run carries out args (without the program's name) and returns the exit code: 0, 1 for an error, which it has then
// written to Stderr, or the code of an ExitError.
func (pr *Program) Run(ctx context.Context, args []string) int {
	root := pr.Root()
	root.SetArgs(args)
	root.SetOut(pr.Stdout)
	root.SetErr(pr.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Err == nil:
		return exit.Code
	}
	fmt.Fprintf(pr.Stderr, "%s: %v\n", cmd.CommandPath(), err)
	if exit != nil {
		return exit.Code
	}
	return 1
}

// knownEnv is every variable that any command of this program reads: one file of variables often serves all roles.
func (pr *Program) knownEnv() map[string]bool {
	known := map[string]bool{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[settings.EnvName(f.Name)] = true })
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(pr.Root())
	return known
}

// suggestFlag names the flag that was probably meant.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w (%s --help lists the flags)", err, cmd.CommandPath())
	}
	known := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	hint := ""
	if near := settings.Nearest(unknown.GetSpecifiedName(), known, ""); near != "" {
		hint = ": did you mean --" + near + "?"
	}
	return fmt.Errorf("%w%s (%s --help lists the flags)", err, hint, cmd.CommandPath())
}

// help writes what the command is, how it is called, and its flags by group.
func help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", strings.TrimSpace(text), cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExample:\n%s\n", strings.Trim(cmd.Example, "\n"))
	}
	if subs := cmd.Commands(); len(subs) > 0 {
		fmt.Fprintln(w, "\nCommands:")
		for _, sub := range subs {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(w, "  %-12s %s\n", sub.Name(), sub.Short)
			}
		}
		fmt.Fprintf(w, "\n%s COMMAND --help says more about each.\n", cmd.CommandPath())
	}
	if cmd.HasAvailableFlags() {
		settings.PrintFlags(w, cmd.Flags())
	}
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprint(w, "\nA flag wins over its environment variable, which wins over the default.\n")
	}
}
