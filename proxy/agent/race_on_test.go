//go:build race

package agent

// fleetSize is smaller under the race detector, which makes the encoding of large topologies slow.
const fleetSize = 1_000
