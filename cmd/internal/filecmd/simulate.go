package filecmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/simulate"
)

// Simulate is `simulate`.
func Simulate() *cobra.Command {
	var conf, scenario, table string
	var o simulate.Options
	cmd := &cobra.Command{
		Use: "simulate --conf FILE --scenario FILE [flags]", Short: "play requests, failures and waits against a file, on a virtual clock", Args: args.None,
		Long: `Plays a scenario (requests, servers that fail or are slow, waits, reloads) against a configuration file, in a world
without sockets whose clock jumps, with the very code that serves live traffic. It prints each pick with what each server
is owed, and totals for each server. The same file, scenario and seed print the same. Exit code 1 when something else
happens than the scenario expects.`,
		Example: `  upstrand simulate --conf nginx.conf --scenario night.txt
  upstrand simulate --conf nginx.conf --scenario night.txt --explain
  upstrand simulate --conf nginx.conf --scenario million.txt --totals --csv picks.csv --seed 7`,
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&conf, "conf", "", "configuration `file` in nginx's syntax")
	f.StringVar(&scenario, "scenario", "", "what happens: a text `file`, one step a line; - reads standard input")
	f.StringVar(&table, "csv", "", "write a row for each server in each pick to this `file`")
	f.BoolVar(&o.Totals, "totals", false, "print the totals only, which is quicker")
	f.BoolVar(&o.Explain, "explain", false, "under each pick, say why each server was passed over or won; of an upstrand, where it begins, goes on and ends")
	f.Uint64Var(&o.Seed, "seed", 1, "the `number` that all chance follows from; a seed in the scenario wins")
	plain(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		if scenario == "" {
			return errors.New("--scenario FILE is needed")
		}
		file, err := read(conf)
		if err != nil {
			return err
		}
		text, err := content(cmd, scenario)
		if err != nil {
			return err
		}
		plays, err := simulate.ParseScenario(scenario, text)
		if err != nil {
			return err
		}
		o.Open = func(name string) (*proxy.File, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(scenario), name)
			}
			return read(name)
		}
		if table == "" {
			return simulate.Run(cmd.Context(), cmd.OutOrStdout(), file, plays, o)
		}
		out, err := os.Create(table)
		if err != nil {
			return fmt.Errorf("--csv: %w", err)
		}
		o.CSV = out
		return errors.Join(simulate.Run(cmd.Context(), cmd.OutOrStdout(), file, plays, o), out.Close())
	}
	return cmd
}

func content(cmd *cobra.Command, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(path)
}
