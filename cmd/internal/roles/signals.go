package roles

import (
	"os"
	"os/signal"
	"syscall"
)

// signals is those that a proxy obeys. Each has its own channel of one: what comes while a reload takes its time is
// carried out once after it, and none takes the place of the other.
type signals struct{ reload, reopen, replace chan os.Signal }

// listen takes them from now on: before the first read of a file, so that one which comes early does not end the process.
// Without replaceable SIGUSR2 keeps its meaning, which is to end the process.
func listen(replaceable bool) *signals {
	s := &signals{reload: make(chan os.Signal, 1), reopen: make(chan os.Signal, 1), replace: make(chan os.Signal, 1)}
	signal.Notify(s.reopen, syscall.SIGUSR1)
	if replaceable {
		signal.Notify(s.replace, syscall.SIGUSR2)
	}
	return s
}

// file takes the one that concerns files too: the configuration, or certificates.
func (s *signals) file() { signal.Notify(s.reload, syscall.SIGHUP) }

// handOn passes on to the next process what came while it was started: it may have read the file before that changed.
func (s *signals) handOn(next *os.Process) {
	for _, c := range []chan os.Signal{s.reload, s.reopen} {
		select {
		case sig := <-c:
			_ = next.Signal(sig)
		default:
		}
	}
}

// stop gives them back: a SIGHUP that comes then ends the process.
func (s *signals) stop() {
	for _, c := range []chan os.Signal{s.reload, s.reopen, s.replace} {
		signal.Stop(c)
	}
}
