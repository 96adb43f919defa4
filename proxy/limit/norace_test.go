//go:build !race

package limit

const racing = false
