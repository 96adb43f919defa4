// Package simulate plays scenarios against a configuration in a virtual world: the very code of live traffic picks and
// retries, but its backends are scripted, its clock moves only when something takes time, and its chance repeats. Nothing
// listens, nothing is sent, no name is asked of anybody.
//
// It is not a model of nginx or of this proxy: it has no arithmetic of its own. It is no load test either: one request
// runs at a time, except those that a scenario holds at their servers.
//
// SCENARIOS.md describes the language.
package simulate
