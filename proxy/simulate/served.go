package simulate

import (
	"slices"

	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy"
)

// served is the file itself or, when it has upstreams and no server, with one added: /NAME and what is below it goes to
// upstream NAME, all else to the first one.
func served(f *proxy.File) *proxy.File {
	isServer := func(n *topology.Node) bool { return n.Name == "server" }
	if slices.ContainsFunc(f.Site, isServer) || len(f.Config.Upstreams) == 0 {
		return f
	}
	at := func(name string, block []*topology.Node, args ...string) *topology.Node {
		return &topology.Node{Name: name, Args: args, Block: block, HasBlock: block != nil, File: "(added)"}
	}
	pass := func(path, upstream string) *topology.Node {
		return at("location", []*topology.Node{at("proxy_pass", nil, "http://"+upstream)}, path)
	}
	block := []*topology.Node{at("listen", nil, "80"), pass("/", f.Config.Upstreams[0].Name)}
	for _, u := range f.Config.Upstreams {
		block = append(block, pass("/"+u.Name, u.Name))
	}
	out := *f
	out.Site = append(slices.Clone(f.Site), at("server", block))
	return &out
}
