//go:build race

package e2e

// worldsAtOnce is how many worlds share two cores. Instances, backends and load are in this process, which the race detector makes
// several times slower.
const worldsAtOnce = 2
