package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/roles"
)

// readyTimeout is what a role has for its answer.
const readyTimeout = 2 * time.Second

// ready asks a role whether it is ready, for the health checks of containers that hold nothing but this binary.
func ready() *cobra.Command {
	return &cobra.Command{
		Use: "ready [URL]", Short: "ask a role whether it is ready, for health checks", Args: cobra.MaximumNArgs(1),
		Long: `Asks a role's /readyz once: exit code 0 when it is ready, 1 with its reason when it is not or does not answer within 2 s.
It is the health check of containers that hold nothing but this binary. Without a URL it asks the proxy's admin address.`,
		Example: `  upstrand ready                               # http://127.0.0.1:8081/readyz
  upstrand ready 127.0.0.1:8082
  upstrand ready http://127.0.0.1:8090/readyz`,
		RunE: func(cmd *cobra.Command, args []string) error {
			url := "http://127.0.0.1:8081/readyz"
			if len(args) == 1 {
				if url = args[0]; !strings.Contains(url, "://") {
					url = "http://" + url + "/readyz"
				}
			}
			return askReady(cmd, url)
		},
	}
}

func askReady(cmd *cobra.Command, url string) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	const most = 4 << 10
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	text := strings.TrimSpace(string(body))
	if err != nil || res.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("%s: %s", res.Status, text), err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), text)
	return nil
}

// version says what this binary is.
func version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "say which version this is", Args: cobra.NoArgs,
		Long:    "Says which version this is, and which Go built it.",
		Example: "  upstrand version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s %s/%s)\n", cmd.Root().Name(), roles.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
