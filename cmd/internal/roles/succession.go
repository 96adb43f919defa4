package roles

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/admin"
	"github.com/upstrand/upstrand/cmd/internal/handover"
	"github.com/upstrand/upstrand/proxy"
	"github.com/upstrand/upstrand/proxy/agent"
)

// succession is how a process takes the place of one that runs the same, and leaves its own to the next.
type succession struct {
	sockets   *handover.Sockets // that this process was given
	successor bool              // it takes another one's place
	lasting   []handover.Socket // that it has for its whole life
	pages     *admin.Server     // nil: it has none
	serving   chan struct{}     // closed when this process takes connections: at once, unless it is a successor
	end       context.CancelCauseFunc
	replaced  atomic.Bool // another one serves
	retire    []func()    // called when it does
}

func newSuccession() succession {
	serving := make(chan struct{})
	close(serving)
	return succession{serving: serving}
}

// Inherit has the process use the sockets that it was given. It is called before anything is listened on.
func (p *Process) Inherit() error {
	sockets, err := handover.Inherit()
	if err != nil {
		return err
	}
	if p.sockets = sockets; sockets.Succeeds() {
		p.successor, p.serving = true, make(chan struct{})
	}
	return nil
}

// replaceable reports whether another process may take this one's place.
func (p *Process) replaceable() bool { return p.sockets != nil }

// listen opens the address of a flag for the life of the process, unless it was given the socket.
func (p *Process) listen(addr, flag, what string) (ln net.Listener, shared bool, err error) {
	ln, shared, err = p.sockets.Listener("tcp", addr)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("listen on %s for %s (--%s): %w", addr, what, flag, err)
	case ln != nil:
		p.Log.Info().Str("addr", ln.Addr().String()).Str("for", what).Msg("listening, on a socket that was open before")
	default:
		if ln, err = admin.Listen(addr, flag, what, p.Log); err != nil {
			return nil, false, err
		}
	}
	if c, ok := ln.(syscall.Conn); ok {
		p.lasting = append(p.lasting, handover.Socket{Network: "tcp", Addr: addr, Conn: c, Shared: shared})
	}
	return ln, shared, nil
}

// keepState has one process at a time write the state file: this one from when it serves, a moment later if another one did
// before, until another one does.
func (p *Process) keepState(a *agent.Agent) {
	p.retire = append(p.retire, a.Retire)
	if !p.successor {
		return
	}
	a.Retire()
	p.Group.Add("state file", func(ctx context.Context) error {
		select {
		case <-p.serving:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-time.After(takeoverTime):
			if a.Keep(); p.replaced.Load() { // by another one, so soon
				a.Retire()
			}
			<-ctx.Done()
		case <-ctx.Done():
		}
		return nil
	})
}

// takeoverTime is enough for the process before to write the file to its end.
const takeoverTime = time.Second

// looksEvery is how often a process that starts looks whether it is ready.
const looksEvery = 20 * time.Millisecond

// ready waits until the process is; an error is ctx's.
func (p *Process) ready(ctx context.Context) error {
	for tick := time.NewTicker(looksEvery); ; {
		if p.Ready.Err() == nil {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return context.Cause(ctx)
		}
	}
}

// succeed takes connections from now on, and lets the process before go.
func (p *Process) succeed() {
	for _, name := range p.sockets.Left() {
		p.Log.Info().Str("socket", name).Msg("a socket that was given to this process is not listened on any more")
	}
	if p.successor {
		close(p.serving)
	}
	if err := p.sockets.Ready(); err != nil {
		p.Log.Warn().Err(err).Msg("taking another process's place")
	}
}

// ending reports whether the process does not serve for long any more.
func (p *Process) ending() bool {
	select {
	case <-p.closing:
		return true
	default:
		return p.replaced.Load()
	}
}

// abandon closes doors that nobody was let in by. The sockets of a process that goes on stay as they are: it has them too.
func (p *Process) abandon(doors *proxy.Doors) {
	if p.successor {
		doors.Share()
	}
	doors.Close()
}

// replaceTimeout is how long a new process has until it serves. It may have to read a topology first.
const replaceTimeout = 2 * time.Minute

// replace starts the program anew, and ends this process once that one serves. Why it could not is logged, and this one
// goes on.
func (p *Process) replace(ctx context.Context, doors []proxy.Socket) *os.Process {
	if p.ending() {
		p.Log.Warn().Msg("SIGUSR2: this process is ending, and does not start another one")
		return nil
	}
	sockets := append([]handover.Socket(nil), p.lasting...)
	for _, d := range doors {
		if c, ok := d.Listener.(syscall.Conn); ok {
			sockets = append(sockets, handover.Socket{Network: d.Network, Addr: d.Addr, Conn: c, Shared: d.Shared})
		}
	}
	p.Log.Info().Int("sockets", len(sockets)).Msg("SIGUSR2: starting the program anew in place of this process")
	bounded, cancel := context.WithTimeout(ctx, replaceTimeout)
	defer cancel()
	next, err := handover.Replace(bounded, sockets)
	if err != nil {
		p.Log.Error().Err(err).Msg("no other process took over: this one goes on")
		return nil
	}
	p.replaced.Store(true)
	p.Log.Info().Int("pid", next.Pid).Msg("another process serves: this one ends what it has begun")
	if err := handover.Notify(fmt.Sprintf("MAINPID=%d", next.Pid)); err != nil {
		p.Log.Warn().Err(err).Msg("systemd does not know of the new process")
	}
	for _, f := range p.retire {
		f()
	}
	p.end(fmt.Errorf("process %d took over", next.Pid))
	if p.pages != nil {
		p.pages.Leave()
	}
	return next
}

// tellSystemd says when the process is ready, and when it ends.
func (p *Process) tellSystemd(ctx context.Context) error {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		<-ctx.Done()
		return nil
	}
	tell := func(state ...string) {
		if err := handover.Notify(state...); err != nil {
			p.Log.Warn().Err(err).Msg("systemd is not told")
		}
	}
	if !p.successor && p.ready(ctx) == nil { // of a successor its predecessor tells
		tell("READY=1")
	}
	<-ctx.Done()
	if !p.replaced.Load() {
		tell("STOPPING=1")
	}
	return nil
}
