// Package poll is the smallest possible loop over sockets, for programs of a benchmark that must never be its bottleneck: epoll, edge-triggered, on one
// thread. Its system calls bypass Go's scheduler, so a wait keeps the only thread that runs Go code: it is for programs with nothing else to do.
//
// Linux only. The proxy does not use it.
package poll
