// Package sidecar beats for a service of any language: it checks whether the service is well, beats while it is, and,
// when it is given the service's command, runs it, passes signals on and ends as it ends. It is what `upstrand beat`
// runs.
//
// What it says, and when:
//
//   - Before the check has succeeded Rise times in a row: nothing. An instance joins when it works, not before.
//   - While the check succeeds: beats, as heartbeat.Sender makes them.
//   - After Fall failures in a row: goodbye. Silence would leave a broken instance in the routing for a whole stale
//     limit, and `draining` would leave with it the clients that are pinned to it. A goodbye acts at once. It is final for its
//     incarnation, so when the check has risen again a new incarnation begins, and proxies begin anew with it too: its old
//     failures and latencies say nothing about the service that has come back.
//   - When the sidecar is told to end (ctx): goodbye first, LeaveWait later the signal for the child, so that the proxies have
//     moved on before it stops to listen; StopTimeout later SIGKILL for its whole process group.
//   - When the child ends by itself: goodbye at once.
//
// It is no supervisor: a child that ended is not started again, and no process but the child and the checks is waited for.
package sidecar
