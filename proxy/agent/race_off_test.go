//go:build !race

package agent

const fleetSize = 10_000
