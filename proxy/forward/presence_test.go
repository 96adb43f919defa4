package forward

import (
	"context"
	"testing"
)

// TestPresence: the context is one as any other.
func TestPresence(t *testing.T) {
	var p Presence
	child, cancel := context.WithCancel(&p)
	defer cancel()
	called := make(chan struct{})
	stopped := context.AfterFunc(&p, func() { t.Error("called after stop") })
	context.AfterFunc(&p, func() { close(called) })
	if !stopped() || stopped() || p.Err() != nil || child.Err() != nil || p.Value("x") != nil {
		t.Error("ended too soon, or a stop that stops twice")
	}
	p.End()
	p.End()
	<-called
	<-child.Done()
	<-p.Done()
	late := make(chan struct{})
	if stop := context.AfterFunc(&p, func() { close(late) }); stop() {
		t.Error("a call that was made can't be stopped")
	}
	<-late
	if p.Err() == nil {
		t.Error("it goes on")
	}
}
