package args

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func try(line string) error {
	root := &cobra.Command{Use: "up", Args: Command, RunE: nothing, SilenceErrors: true, SilenceUsage: true}
	listener := &cobra.Command{Use: "listener", Args: None, RunE: nothing}
	listener.Flags().Bool("log", false, "")
	service := &cobra.Command{Use: "service", Args: Command, RunE: nothing}
	service.AddCommand(
		&cobra.Command{Use: "ls", Args: None, RunE: nothing}, &cobra.Command{Use: "show", Args: One("SERVICE", "up service ls lists them"), RunE: nothing},
	)
	root.AddCommand(listener, service, &cobra.Command{Use: "beat", Args: AfterDashes, RunE: nothing})
	root.SetArgs(strings.Fields(line))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	return root.Execute()
}

func nothing(*cobra.Command, []string) error { return nil }

func TestErrorsSayWhatWasMeant(t *testing.T) {
	for line, want := range map[string]string{
		"":                     "",
		"service ls":           "",
		"service show a":       "",
		"beat -- ./orders -x":  "",
		"listner":              `unknown command "listner": did you mean listener? (up --help lists the commands)`,
		"lis":                  `unknown command "lis": did you mean listener?`,
		"zebra":                `unknown command "zebra" (up --help lists the commands)`,
		"service list":         `unknown command "list": did you mean ls? (up service --help lists the commands)`,
		"service ls 3":         `unexpected "3": the command takes no arguments (up service ls --help lists the flags)`,
		"service show":         `SERVICE is missing (up service ls lists them)`,
		"service show a b":     `unexpected "b" after a (`,
		"listener --log false": `unexpected "false": a switch takes its value after =, as in --log=false`,
		"listener false":       `unexpected "false": the command takes no arguments`,
		"beat ./orders":        `unexpected "./orders": the service's command stands after --, as in -- ./orders`,
		"beat x -- ./orders":   `unexpected "x"`,
	} {
		err := try(line)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("up %s: %v, want %s", line, err, want)
		}
	}
}
