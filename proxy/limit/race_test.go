//go:build race

package limit

const racing = true
