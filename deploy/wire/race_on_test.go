//go:build race

package wire

const largeMessage = 1 << 20
