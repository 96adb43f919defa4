package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// DefaultAdmin is where the commands look for a proxy's admin address.
const DefaultAdmin = "http://127.0.0.1:8081"

// The bounds of a call of an admin address.
const (
	adminTimeout = 15 * time.Second
	adminMost    = 64 << 20
)

// adminPort is the admin address of a proxy.
type adminPort struct{ base *url.URL }

// adminFlag declares --admin.
func adminFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "admin", DefaultAdmin, "URL of a proxy's admin address, or its host:port")
}

// asked makes work a cobra function that is given an admin address and a printer.
func asked(c *common, admin *string, work func(ctx context.Context, at adminPort, out *printer, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cmd.SilenceUsage = true
		out, err := c.printer(cmd)
		if err != nil {
			return err
		}
		base, err := url.Parse(settings.WithScheme(*admin))
		if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" {
			return fmt.Errorf("--admin (%s) is %q: want http://HOST:PORT or https://HOST:PORT", settings.EnvName("admin"), *admin)
		}
		return work(cmd.Context(), adminPort{base}, out, args)
	}
}

// call asks for a page and reads what it says into out. What the proxy says of a wrong parameter is the error.
func (a adminPort) call(ctx context.Context, method, page string, query url.Values, out any) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	at := a.base.JoinPath(page)
	at.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%w (is a proxy's admin address there? --admin says where to look)", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, adminMost))
	text := strings.TrimSpace(string(body[:min(len(body), 2000)]))
	switch {
	case err != nil:
		return fmt.Errorf("read the answer of %s: %w", at, err)
	case res.StatusCode == http.StatusNotFound && strings.HasPrefix(text, "404 "):
		return fmt.Errorf("%s has no page %s: is it the admin address of a proxy? (--admin)", a.base, page)
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusBadRequest:
		return fmt.Errorf("%s", cell(text))
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %s: %s", at, res.Status, cell(text))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s answers what is no such page: %w (is it the admin address of a proxy? --admin)", at, err)
	}
	return nil
}
