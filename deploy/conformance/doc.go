// Package conformance replays what a real nginx was recorded to do (testdata, one file for each theme) against a server
// program, with real sockets: scripted backends, clients, an access log, reloads by signal. Each case has a fresh server
// in a network namespace of its own, so that the literal addresses of the recording can be used: consistent hashing,
// sticky ids and names by address depend on them.
//
// It judges a program from outside and knows nothing of how it is built. The recording says what nginx did; where we do
// something else on purpose, testdata/ours.json holds what, and proxy/DEVIATIONS.md why.
package conformance
