package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/cmd/internal/logging"
	"github.com/upstrand/upstrand/cmd/internal/roles"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Command describes a command that runs a process.
type Command struct {
	Use, Short, Long, Example string
	Hidden                    bool
	Args                      cobra.PositionalArgs
	Deadline                  time.Duration // what the end of the process may take; 0 is 25 s
	LogLevel                  string        // default of --log-level; empty: the program's
	// Arguments says what is wrong with the arguments, beyond Args; only --check-config asks. nil: nothing is.
	Arguments func(args []string) settings.Problems
	// Declare declares the command's flags and returns what starts it once they have their values.
	Declare func(*settings.Set) Start
}

// Start does the command's work and blocks until it is done or ctx ends. args are those after the flags.
type Start func(ctx context.Context, p *roles.Process, args []string) error

// process marks commands that run a process: they log what others write to stderr.
const process = "upstrand_process"

// deadline is the default of what the end of a process may take: below the 30 s after which orchestrators kill.
const deadline = 25 * time.Second

// Cobra builds the command: flags and environment, --check-config, logger, then Start.
func (pr *Program) Cobra(c Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, Hidden: c.Hidden, Args: c.Args, DisableFlagsInUseLine: true,
		Annotations: map[string]string{process: ""},
	}
	if c.Args == nil {
		cmd.Args = args.None
	}
	set := settings.NewSet(cmd.Flags())
	start := c.Declare(set)
	var log logging.Options
	log.Flags(set, cmp.Or(c.LogLevel, pr.LogLevel))
	var check bool
	set.Group("Other").Bool(&check, "check-config", false, "look at all settings, say what is wrong with them, and end: exit code 0 or 1")
	set.NoEnv("check-config")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		problems := set.Problems()
		if check && c.Arguments != nil {
			problems = append(problems, c.Arguments(args)...)
		}
		if err := problems.Err(); err != nil {
			return err
		}
		if check {
			return pr.checked(cmd)
		}
		logger, err := logging.New(log, pr.Stderr)
		if err != nil {
			return err
		}
		pr.warn(logger)
		logger.Info().Str("command", cmd.Name()).Str("version", roles.Version()).Msg("starting")
		p := roles.NewProcess(logger, cmp.Or(c.Deadline, deadline))
		return start(cmd.Context(), p, args)
	}
	return cmd
}

// checked says that the settings are good, and what is odd about the environment.
func (pr *Program) checked(cmd *cobra.Command) error {
	w := cmd.OutOrStdout()
	pr.unknown(func(text string) { fmt.Fprintf(w, "warning: %s\n", text) })
	fmt.Fprintf(w, "%s: the settings can be used\n", cmd.CommandPath())
	return nil
}

// warn logs variables that look like ours and are not.
func (pr *Program) warn(log zerolog.Logger) { pr.unknown(func(text string) { log.Warn().Msg(text) }) }

// unknown tells of each variable that looks like ours and is not.
func (pr *Program) unknown(say func(text string)) {
	for _, u := range settings.UnknownEnv(pr.Environ, pr.knownEnv()) {
		say(unknownText(u))
	}
}

func unknownText(u settings.Unknown) string {
	if u.Nearest == "" {
		return "environment variable " + u.Name + " is not a setting of ours"
	}
	return "environment variable " + u.Name + " is not a setting of ours: did you mean " + u.Nearest + "?"
}
