//go:build !race

package socket

const raceDetector = false
