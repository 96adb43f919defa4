//go:build !race

package e2e

// worldsAtOnce is how many worlds share two cores: they mostly wait.
const worldsAtOnce = 4
