// Package args checks the arguments of commands (what is neither flag nor command) and says what was probably meant.
//
// It reads no flags; those are package settings' and pflag's.
package args

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// None is for commands that take flags alone.
func None(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if name := openSwitch(cmd, args[0]); name != "" {
		return fmt.Errorf("unexpected %q: a switch takes its value after =, as in --%s=%s", args[0], name, args[0])
	}
	return fmt.Errorf("unexpected %q: the command takes no arguments%s", args[0], helpHint(cmd, "flags"))
}

// openSwitch is the switch that word was meant for: one that was given, as in `--access-log false`.
func openSwitch(cmd *cobra.Command, word string) (name string) {
	if word != "true" && word != "false" {
		return ""
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal == "true" && name == "" {
			name = f.Name
		}
	})
	return name
}

// Command is for commands that only have commands below them: what stands there was meant to be one.
func Command(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := nearest(cmd, args[0]); near != "" {
		hint = ": did you mean " + near + "?"
	} else if name := openSwitch(cmd, args[0]); name != "" {
		hint = fmt.Sprintf(": a switch takes its value after =, as in --%s=%s", name, args[0])
	}
	return fmt.Errorf("unknown command %q%s%s", args[0], hint, helpHint(cmd, "commands"))
}

// nearest is the command below cmd that word resembles or begins.
func nearest(cmd *cobra.Command, word string) string {
	known := map[string]bool{}
	begun := ""
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		known[sub.Name()] = true
		if word != "" && strings.HasPrefix(sub.Name(), word) {
			begun = sub.Name()
		}
	}
	if begun != "" {
		return begun
	}
	return settings.Nearest(word, known, "")
}

// One is for commands that take exactly one argument: what is its name in the usage, and where says how to find one.
func One(what, where string) cobra.PositionalArgs { return Some(what, where, 1) }

// Some is for commands that take 1 to most arguments.
func Some(what, where string, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s is missing (%s)", what, where)
		case len(args) > most:
			return fmt.Errorf("unexpected %q after %s%s", args[most], strings.Join(args[:most], " "), helpHint(cmd, "flags"))
		}
		return nil
	}
}

// AfterDashes is for commands that take a command line of another program, after --.
func AfterDashes(cmd *cobra.Command, args []string) error {
	if at := cmd.ArgsLenAtDash(); len(args) == 0 || at == 0 {
		return nil
	}
	if name := openSwitch(cmd, args[0]); name != "" {
		return None(cmd, args)
	}
	return fmt.Errorf("unexpected %q: the service's command stands after --, as in -- %s", args[0], args[0])
}

func helpHint(cmd *cobra.Command, lists string) string {
	return " (" + cmd.CommandPath() + " --help lists the " + lists + ")"
}
