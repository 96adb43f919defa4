// Command proxy runs our proxy and others one after the other before the same backend and says what a request costs each of them, in processor time
// of the proxy's process, system time included: a rate says little on a machine that others use, cost says what a core would serve.
//
//	table     requests per CPU-second of nginx, HAProxy, Caddy, httputil.ReverseProxy and us, by kind of request, with the ratio to nginx
//	features  the same of ourselves with an access log, without one, with proxy_set_header lines and so on
//	latency   p50, p99 and p99.9 at half of what the slowest serves, beside nginx, HAProxy and the bare backend
//	memory    resident memory with 10,000 idle connections, and with 1,000 upstreams of 10 servers
//	profile   processor and allocation profiles of us, system calls per request
//	train     the profile that the compiler builds us by: cmd/upstrand/default.pgo is written anew
//
// Each proxy has one thread or GOMAXPROCS=1 and is bound to one core; backend and load generator (commands origin and load beside this one) share the others. All keep connections
// on both sides. A burst of load lasts a second or two; in a round each proxy gets one burst of each row, so that what is compared ran within
// seconds, and what is printed is the median over the rounds of the ratio inside a round. A burst counts only if every answer was right and no connection
// waited a second for one: else it is repeated once and then left out, with the reason.
//
// It needs Linux with taskset, and in PATH nginx and haproxy; Caddy is built from the module in ../caddy. What is missing is left out and said. It is no test: it fails when it can't
// measure, not when we are slow.
package main
