//go:build race

package script

// racing: the race detector makes pools forget, so that allocations can not be counted, and regular expressions slow.
const racing = true
