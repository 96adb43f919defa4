//go:build race

package site

// racing: the race detector makes pools forget, so that allocations can't be counted.
const racing = true
