// Package rig starts and steers the parts of a whole installation for the end-to-end tests: a Kafka broker (a real one in
// KRaft mode, or the embedded one of upstrand-dev), a database (a real MariaDB, or an SQLite file), every role as a
// process of its own, beating instances with small HTTP backends, constant load, and an observer of what is published.
// Each part can be stopped, killed, paused, cut off and brought back.
//
// A World is one such installation; worlds share nothing and can run side by side. All traffic stays on loopback.
//
// It is for tests only, holds no assertions about what is right, and is never part of a binary that is delivered.
package rig
