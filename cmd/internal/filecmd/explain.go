package filecmd

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/upstrand/upstrand/cmd/internal/args"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/simulate"
)

// Explain is `explain`.
func Explain() *cobra.Command {
	var conf, request, client string
	var headers, servers []string
	cmd := &cobra.Command{
		Use: "explain --conf FILE --request 'GET /path' [flags]", Short: "say what would become of one request, without sending it", Args: args.None,
		Long: `Says what would become of one request if a proxy that has just started served the file: the server and the location
that take it, what is done to its path, the upstream, and for each of its servers the weights before and after the pick
and why it was passed over or won; of an upstrand, where the walk begins, why it goes on and why it ends. --server says
which servers would not answer well. Nothing is sent; no name server is asked. Of a proxy that runs, its admin address says
the same of the requests that it had: /debug/picks?upstream=NAME and /debug/picks?upstrand=NAME.`,
		Example: `  upstrand explain --conf nginx.conf --request 'GET /orders/7'
  upstrand explain --conf nginx.conf --request 'GET / HTTP/1.1' --header 'Host: shop.example' --header 'Cookie: srv=a' --client 192.0.2.7
  upstrand explain --conf nginx.conf --request 'GET /' --server 'a refuse' --server 'b status:503'`,
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&conf, "conf", "", "configuration `file` in nginx's syntax")
	f.StringVar(&request, "request", "GET /", "the request's first `line`; HTTP/1.1 may be left out")
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
		if err != nil {
			return err
		}
		ask.Servers = servers
		return simulate.Explain(cmd.Context(), cmd.OutOrStdout(), file, ask)
	}
	return cmd
}

func askOf(request string, headers []string, client string) (a simulate.Ask, err error) {
	words := strings.Fields(request)
	if len(words) == 3 && strings.HasPrefix(words[2], "HTTP/") {
		words = words[:2]
	}
	if len(words) == 1 {
		words = []string{"GET", words[0]}
	}
	if len(words) != 2 || !strings.HasPrefix(words[1], "/") {
		return a, fmt.Errorf("--request is %q: want 'METHOD /path', such as 'GET /orders/7?x=1'", request)
	}
	a.Method, a.Target = words[0], words[1]
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
