// Command caddy is Caddy with its standard modules, for the benchmark of proxies beside it. It is a module of its own, so that nothing of it reaches
// what we ship.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

func main() { caddycmd.Main() }
