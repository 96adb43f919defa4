//go:build !race

package wire

const largeMessage = 16 << 20
