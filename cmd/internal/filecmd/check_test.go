package filecmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// checkedText runs check as it is under a group that has -o, with something on standard input.
func checkedText(text string, line ...string) string {
	var out bytes.Buffer
	root := &cobra.Command{Use: "topology", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringP("output", "o", "table", "")
	root.AddCommand(Check())
	root.SetArgs(append([]string{"check"}, line...))
	root.SetIn(strings.NewReader(text))
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.Execute(); err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return out.String()
}

func TestCheckOfStandardInput(t *testing.T) {
	const good = "server { listen 80; location / { return 204; } }\n"
	for _, c := range []struct {
		text string
		line []string
		want string
	}{
		{good, []string{"-"}, "- can be used (1 file read, 0 notices)"},
		{"server {\n lissten 80;\n}\n", []string{"-"}, "-:2: lissten: unknown directive"},
		{"", []string{"-"}, "-:1: has no server block"},
		{"include ../../../proxy/simulate/testdata/night.conf;\n", []string{"-"}, "- can be used (2 files read"},
		{good, []string{"-", "-o", "json"}, `"usable": true`},
		{good, []string{"-", "-o", "yaml"}, `error: --output "yaml": want table or json`},
	} {
		if got := checkedText(c.text, c.line...); !strings.Contains(got, c.want) {
			t.Errorf("%v of %q:\n%s\nwant %s", c.line, c.text, got, c.want)
		}
	}
}
