// Package filecmd is the commands that look at a configuration file without serving it: check says what is wrong with
// it, explain what would become of one request, simulate what would become of many.
//
// They touch neither the network nor anything else that runs.
package filecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/proxy"
)

// errFaults ends a command that has already said what is wrong.
var errFaults = errors.New("the file can't be used")

// read reads the file of --conf, which may have upstreams alone.
func read(path string) (*proxy.File, error) {
	if path == "" {
		return nil, errors.New("--conf FILE is needed")
	}
	f, err := conffile.Part(path)
	if err != nil {
		return nil, conffile.Summary(path, err)
	}
	return f.Use, nil
}

// plain keeps flags from taking their values from the environment: that of a proxy on the same host is not meant.
func plain(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[settings.NoEnv] = nil
	})
}

// one is the error for a command that wants exactly one argument.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, list []string) error {
		if len(list) != 1 {
			return fmt.Errorf("%s is needed, and nothing else: got %q", what, list)
		}
		return nil
	}
}
