// Package arch holds the test that keeps the arrows between packages true: who may import whom, with the reason. It
// contains no code.
package arch
