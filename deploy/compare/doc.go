// Package compare runs a real nginx and the proxy on the same configurations, one after the other over the same backends, and compares
// what clients and backends see. Its tests need an nginx 1.22 or later and run by `make compare-nginx` only.
//
// TestConfigurations holds whole configurations in the shapes that people use (testdata/*.conf with the requests of
// testdata/*.req); TestOrders generates upstreams, failures and waits at random and compares the peers of every request.
//
// What differs on purpose between the two is left out of the comparison here, in one place (see differences in
// seen_test.go), or has its line in proxy/DEVIATIONS.md.
package compare
