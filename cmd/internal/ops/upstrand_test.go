package ops

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/conffile"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/upstrand"
	"github.com/upstrand/upstrand/registry/registrytest"
)

// ringProxy is the admin address of a proxy that serves testdata/ring.conf, at registrytest.Now, after a walk that went
// from a to b.
func ringProxy(t *testing.T) string {
	t.Helper()
	file, err := conffile.Read("testdata/ring.conf", false)
	if err != nil {
		t.Fatal(err)
	}
	now := registrytest.Now().UnixNano()
	p, err := proxy.New(proxy.Config{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	if err := p.Load(file.Use); err != nil {
		t.Fatal(err)
	}
	walk := p.Upstrand("ring").Begin(upstrand.Ask{Method: []byte("GET")}, now)
	walk.Enter(now)
	walk.After(upstrand.Result{Status: 503, Held: true}, now)
	walk.Enter(now)
	walk.After(upstrand.Result{Status: 200, Held: true}, now+int64(30*time.Millisecond))
	server := httptest.NewServer(p.Admin(nil, nil))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return server.URL
}

func askedOf(t *testing.T, flag, url, line string) string {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "upstrand", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetArgs(append(strings.Fields(line), flag, url))
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintln(&out, "error:", strings.ReplaceAll(err.Error(), url, "URL"))
	}
	return "$ upstrand " + line + "\n" + out.String() + "\n"
}

// The life of a blacklist, as an operator sees it.
func TestUpstrandsOfAProxyAreShownAndReset(t *testing.T) {
	url := ringProxy(t)
	var text strings.Builder
	for _, line := range []string{
		"upstrand ls",
		"upstrand show ring",
		"upstrand show dice",
		"upstrand show RING -o json",
		"upstrand reset ring --upstream b",
		"upstrand reset ring --upstream nobody",
		"upstrand reset ring --upstream a -o json",
		"upstrand reset ring",
		"upstrand ls",
		"upstrand ls -o yaml",
		"upstrand ls --zone a",
		"upstrand show nobody",
		"upstrand reset nobody",
		"upstrand reset",
		"upstrand show",
		"upstrand list",
		"upstrand",
	} {
		text.WriteString(askedOf(t, "--admin", url, line))
	}
	golden(t, "upstrand.txt", text.String())
}

func TestPublishedUpstrandsAreShown(t *testing.T) {
	server, db := fleet(t)
	registrytest.Strands(t, db)
	var text strings.Builder
	for _, line := range []string{
		"upstrand ls --published",
		"upstrand ls --published --zone b",
		"upstrand show canary --published",
		"upstrand show orders --published",
		"upstrand show orders --published --zone a -o json",
		"upstrand show nobody --published",
	} {
		text.WriteString(askedOf(t, "--registry", server.URL, line))
	}
	golden(t, "upstrand_published.txt", text.String())
}

// What listens there may be no proxy, an older one, or nothing.
func TestAnAdminAddressThatIsNoneIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/other/"):
			fmt.Fprintln(w, "<html>")
		case strings.HasPrefix(r.URL.Path, "/young/"):
			http.Error(w, "no topology yet", http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	for at, want := range map[string]string{
		server.URL:             "has no page /debug/upstrands: is it the admin address of a proxy?",
		server.URL + "/other/": "answers what is no such page",
		server.URL + "/young/": "503 Service Unavailable: no topology yet",
		"ftp://x":              `--admin (UPSTRAND_ADMIN) is "URL": want http://HOST:PORT or https://HOST:PORT`,
		"127.0.0.1:1":          "is a proxy's admin address there? --admin says where to look",
	} {
		if got := askedOf(t, "--admin", at, "upstrand ls"); !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", at, got, want)
		}
	}
}
