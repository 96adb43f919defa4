//go:build race

package socket

const raceDetector = true
