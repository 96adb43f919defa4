package filecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
)

// checked is what check prints as JSON.
type checked struct {
	File    string   `json:"file"`
	Usable  bool     `json:"usable"`
	Faults  []remark `json:"faults"`
	Notices []remark `json:"notices"`
	Read    []string `json:"read"`
}

type remark struct {
	File      string `json:"file"`
	Line      int    `json:"line,omitempty"`
	Directive string `json:"directive,omitempty"`
	Reason    string `json:"reason"`
	Allowed   string `json:"allowed,omitempty"`
}

// Check is `topology check FILE`.
func Check() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Check a configuration file, with all that it includes", Args: one("a file"),
		Long: "Check a configuration file in nginx's syntax, with all that it includes: every fault with its place and what would\n" +
			"be allowed, then notices about what has no effect here. Exit code 1 when there are faults. Nothing is asked: not the\n" +
			"registry, and no name server, so that names of hosts are taken as they are. Logs are not opened, but a log that could not be\n" +
			"is a fault, and so is a certificate that can't be read.",
		Example: "  upstrand topology check nginx.conf\n  upstrand topology check - < nginx.conf\n  upstrand topology check --json nginx.conf",
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, as -o json does")
	// Its own, so that the help does not offer what the check has no use for.
	cmd.Flags().String("registry", "", "")
	_ = cmd.Flags().MarkHidden("registry")
	plain(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true
		if f := cmd.Flags().Lookup("output"); f != nil {
			switch format := f.Value.String(); format {
			case "json":
				asJSON = true
			case "table":
			default:
				return fmt.Errorf("--output %q: want table or json", format)
			}
		}
		f, err := check(cmd, args[0])
		var faults proxy.Faults
		if err != nil && !errors.As(err, &faults) {
			return err
		}
		if asJSON {
			return printJSON(cmd, args[0], f, faults)
		}
		return printText(cmd, args[0], f, faults)
	}
	return cmd
}

// check takes - for standard input.
func check(cmd *cobra.Command, path string) (*conffile.File, error) {
	if path != "-" {
		return conffile.Check(path, false)
	}
	text, err := io.ReadAll(cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	return conffile.CheckText(path, text)
}

func printText(cmd *cobra.Command, path string, f *conffile.File, faults proxy.Faults) error {
	out := cmd.OutOrStdout()
	for _, fault := range faults {
		fmt.Fprintln(out, fault.Error())
	}
	for _, n := range f.Notices {
		fmt.Fprintln(out, "notice: "+n.Error())
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s can't be used: %s", path, count(len(faults), "fault"))
	}
	fmt.Fprintf(out, "%s can be used (%s read, %s)\n", path, count(files(f.Read), "file"), count(len(f.Notices), "notice"))
	return nil
}

// files counts what was read, standard input among it, and leaves out the folders.
func files(list []string) (n int) {
	for _, path := range list {
		if path == "-" {
			n++
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			n++
		}
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func printJSON(cmd *cobra.Command, path string, f *conffile.File, faults proxy.Faults) error {
	e := json.NewEncoder(cmd.OutOrStdout())
	e.SetIndent("", "  ")
	if err := e.Encode(checked{path, len(faults) == 0, remarks(faults), remarks(f.Notices), f.Read}); err != nil {
		return err
	}
	if len(faults) > 0 {
		return errFaults
	}
	return nil
}

func remarks(list []topology.Fault) []remark {
	out := make([]remark, len(list))
	for i, f := range list {
		out[i] = remark{f.File, f.Line, f.Name, f.Reason, f.Allowed}
	}
	return out
}
