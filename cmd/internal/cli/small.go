package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/cmd/internal/roles"
	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// readyTimeout is what a role has for its answer.
const readyTimeout = 2 * time.Second

// ready asks a role whether it is ready, for the health checks of containers that hold nothing but this binary.
func ready() *cobra.Command {
	return &cobra.Command{
		Use: "ready [URL]", Short: "ask a role whether it is ready, for health checks", Args: func(cmd *cobra.Command, list []string) error {
			if len(list) > 1 {
				return args.Some("", "", 1)(cmd, list)
			}
			return nil
		},
		Long: `Asks a role's /readyz once: exit code 0 when it is ready, 1 with its reason when it is not or does not answer within 2 s.
It is the health check of containers that hold nothing but this binary. A URL without a path, and host:port alone, mean
/readyz there; without any it asks the proxy's admin address.`,
		Example: `  upstrand ready                               # http://127.0.0.1:8081/readyz
  upstrand ready 127.0.0.1:8082
  upstrand ready http://127.0.0.1:8090`,
		RunE: func(cmd *cobra.Command, args []string) error {
			address := "127.0.0.1:8081"
			if len(args) == 1 {
				address = args[0]
			}
			url, err := readyURL(address)
			if err != nil {
				return err
			}
			return askReady(cmd, url)
		},
	}
}

// readyURL completes what people write for the address of a role: its path is /readyz unless another one is given.
func readyURL(address string) (string, error) {
	u, err := url.Parse(settings.WithScheme(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q: want host:port, http://host:port or the URL of a role's /readyz", address)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/readyz"
	}
	return u.String(), nil
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
		Use: "version", Short: "say which version this is", Args: args.None,
		Long:    "Says which version this is, and which Go built it.",
		Example: "  upstrand version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "%s %s (%s %s/%s)\n", cmd.Root().Name(), roles.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
