package filecmd

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/simulate"
)

// Explain is `explain`.
func Explain() *cobra.Command {
	var conf, request, client, scheme string
	var port int
	var headers, servers []string
	cmd := &cobra.Command{
		Use: "explain --conf FILE --request 'GET /path' [flags]", Short: "say what would become of one request, without sending it", Args: args.None,
		Long: `Says what would become of one request if a proxy that has just started served the file: the server and the location
that take it, what is done to its path, the upstream, and for each of its servers the weights before and after the pick
and why it was passed over or won; of an upstrand, where the walk begins, why it goes on and why it ends. --server says
which servers would not answer well. Scheme and port choose the listen, by a URL in --request or by --scheme and --port;
when a file has several and neither is said, it is that of port 80, else the first one, and the first line says so.
Nothing is sent; no name server is asked. Of a proxy that runs, its admin address says
the same of the requests that it had: /debug/picks?upstream=NAME and /debug/picks?upstrand=NAME.`,
		Example: `  upstrand explain --conf nginx.conf --request 'GET /orders/7'
  upstrand explain --conf nginx.conf --request 'GET / HTTP/1.1' --header 'Host: shop.example' --header 'Cookie: srv=a' --client 192.0.2.7
  upstrand explain --conf nginx.conf --request 'GET https://shop.example:8443/orders/7'
  upstrand explain --conf nginx.conf --request 'GET /' --server 'a refuse' --server 'b status:503'`,
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&conf, "conf", "", "configuration `file` in nginx's syntax")
	f.StringVar(&request, "request", "GET /", "the request's first `line`, with a path or with a URL, whose scheme and port choose the listen and whose host is the Host; HTTP/1.1 may be left out")
	f.StringVar(&scheme, "scheme", "", "`scheme` of the listen to arrive at: http or https")
	f.IntVar(&port, "port", 0, "port of the listen to arrive at, a `number` from 1 to 65535")
	f.StringArrayVar(&headers, "header", nil, "a header `field` as 'Name: value'; may be repeated")
	f.StringVar(&client, "client", "", "`address` of the client (127.0.0.1)")
	f.StringArrayVar(&servers, "server", nil, "what servers do, as 'SERVER… `BEHAVIOUR`' of a scenario: 'a b refuse', 'c status:503'; may be repeated; others answer 200")
	plain(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true
		file, err := read(conf)
		if err != nil {
			return err
		}
		ask, err := askOf(request, headers, client)
		if err == nil {
			err = arrival(&ask, scheme, port, cmd.Flags().Changed("port"))
		}
		if err != nil {
			return err
		}
		ask.Servers = servers
		return simulate.Explain(cmd.Context(), cmd.OutOrStdout(), file, ask.Ask)
	}
	return cmd
}

// arrival is what flags say of the listen, which must not be at odds with a URL.
func arrival(a *ask, scheme string, port int, given bool) error {
	switch {
	case scheme != "" && scheme != "http" && scheme != "https":
		return fmt.Errorf("--scheme is %q: want http or https", scheme)
	case given && (port < 1 || port > 65535):
		return fmt.Errorf("--port is %d: want a number from 1 to 65535", port)
	case scheme != "" && a.Scheme != "" && scheme != a.Scheme:
		return fmt.Errorf("--scheme is %q, and the URL of --request says %s: one of them is enough", scheme, a.Scheme)
	case given && a.Port != 0 && port != a.Port:
		return fmt.Errorf("--port is %d, and the URL of --request says %d: one of them is enough", port, a.Port)
	}
	if scheme != "" {
		a.Scheme = scheme
	}
	if given {
		a.Port = port
	}
	return nil
}

// ask is a simulate.Ask that is being read.
type ask struct{ simulate.Ask }

// locate takes a path, or a URL with the host in it.
func (a *ask) locate(target string) bool {
	if strings.HasPrefix(target, "/") {
		a.Target = target
		return true
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return false
	}
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		i = len(rest)
	}
	a.Scheme, a.Host, a.Target = scheme, rest[:i], rest[i:]
	if !strings.HasPrefix(a.Target, "/") {
		a.Target = "/" + a.Target
	}
	a.Target, _, _ = strings.Cut(a.Target, "#")
	u, err := url.Parse(scheme + "://" + a.Host)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	if u.Port() == "" {
		return true
	}
	a.Port, err = strconv.Atoi(u.Port())
	return err == nil && a.Port >= 1 && a.Port <= 65535
}

func askOf(request string, headers []string, client string) (a ask, err error) {
	words := strings.Fields(request)
	if len(words) == 3 && strings.HasPrefix(words[2], "HTTP/") {
		words = words[:2]
	}
	if len(words) == 1 {
		words = []string{"GET", words[0]}
	}
	if len(words) != 2 || !a.locate(words[1]) {
		return a, fmt.Errorf("--request is %q: want 'METHOD /path' or 'METHOD http[s]://HOST[:PORT]/path', such as 'GET /orders/7?x=1'", request)
	}
	a.Method = words[0]
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return a, fmt.Errorf("--header is %q: want 'Name: value'", h)
		}
		if strings.EqualFold(name, "Host") {
			a.Host = value
			continue
		}
		a.Fields = append(a.Fields, forward.Field{Name: []byte(name), Value: []byte(value)})
	}
	if client != "" {
		if a.Client, err = netip.ParseAddr(client); err != nil {
			return a, fmt.Errorf("--client is %q: want an IPv4 or IPv6 address", client)
		}
	}
	return a, nil
}
