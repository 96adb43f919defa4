package ops

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// explained is an error answer of the registry in the words of the command line.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// explain puts what the registry says of its parameters into the words of the command's flags.
func explain(cmd *cobra.Command, err error) error {
	var done *explained
	if errors.As(err, &done) {
		return err
	}
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Problem == nil || answer.Status >= 500 {
		return err
	}
	program := cmd.Root().Name()
	text := inCommands(program, answer.Problem.Detail)
	if len(answer.Problem.Errors) == 0 || client.IsNotFound(err) {
		return &explained{text, err}
	}
	var parts []string
	for _, e := range answer.Problem.Errors {
		parts = append(parts, fieldText(cmd, e))
	}
	return &explained{strings.Join(parts, "; "), err}
}

// fieldText is one thing that is wrong, by the name of its flag.
func fieldText(cmd *cobra.Command, e wire.FieldError) string {
	name := e.Location
	if where, what, ok := strings.Cut(e.Location, "."); ok && (where == "query" || where == "path" || where == "body") {
		name = what
		if flag := strings.ReplaceAll(what, "_", "-"); cmd.Flags().Lookup(flag) != nil {
			name = "--" + flag
		}
	}
	text := name + ": " + inCommands(cmd.Root().Name(), e.Message)
	if e.Value != "" {
		text += ", given " + e.Value
	}
	if e.Allowed != "" {
		text += " (allowed: " + e.Allowed + ")"
	}
	return text
}

// calls are the API's lists that answers point to, and the commands that show them.
var calls = []struct {
	path *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`GET /v1/services/([^/ ]+)/instances`), "$program instance ls $1"},
	{regexp.MustCompile(`GET /v1/topology/declared/([^/ ]+)/history`), "$program topology declared history $1"},
	{regexp.MustCompile(`GET /v1/topology/declared`), "$program topology declared ls"},
	{regexp.MustCompile(`GET /v1/topology/versions`), "$program topology versions"},
	{regexp.MustCompile(`GET /v1/upstrands`), "$program upstrand ls --published"},
	{regexp.MustCompile(`GET /v1/(service|instance|agent|event|stream)s`), "$program $1 ls"},
	{regexp.MustCompile(`GET /v1/rejected`), "$program rejected ls"},
	{regexp.MustCompile(`GET /v1/topology`), "$program topology show"},
}

func inCommands(program, text string) string {
	for _, c := range calls {
		text = c.path.ReplaceAllString(text, strings.ReplaceAll(c.with, "$program", program))
	}
	return text
}
