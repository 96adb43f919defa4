// Package limit counts requests and connections by a key, as nginx's limit_req and limit_conn do: requests by a leaky
// bucket in milliseconds and thousandths of a request, connections by their number. What it knows of keys is bounded by
// the size of a zone, whoever sends them.
//
// It knows no requests and no configuration, and nobody waits in it: it says for how long.
package limit
