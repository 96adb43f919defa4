package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestInheritedSockets: a door takes the socket that its process was given, and while doors are held nobody is served
// there, nor refused: connections wait.
func TestInheritedSockets(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	var asked []string
	s := &takers{text: "new "}
	d := NewDoors(s.serve)
	defer d.Close()
	d.Inherit(func(network, addr string) (net.Listener, bool, error) {
		asked = append(asked, network+" "+addr)
		if addr != at {
			return nil, false, nil
		}
		return ln, true, nil
	}, true)
	own := freeDoor(t)
	c, err := d.Prepare([]Door{door(t, at), own})
	if err != nil {
		t.Fatal(err)
	}
	c.Commit()
	early, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	_ = early.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := early.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before the release: %d bytes, %v", n, err)
	}
	_ = early.SetReadDeadline(time.Time{})
	if len(asked) != 2 {
		t.Errorf("asked for %v", asked)
	}
	d.Release()
	text, err := io.ReadAll(early)
	if got := string(text); err != nil || got != "new 0s" {
		t.Errorf("the connection that waited got %q", got)
	}
	if !reachable(own) {
		t.Error("the door that nobody had is closed")
	}
	sockets := d.Sockets()
	for _, s := range sockets {
		if s.Network != "tcp4" || s.Addr != s.Listener.Addr().String() || s.Addr != at && s.Addr != own.Addr.String() {
			t.Errorf("socket %+v", s)
		}
	}
	if len(sockets) != 2 {
		t.Errorf("%d sockets", len(sockets))
	}
}

// TestHeldDoorsClose: nobody waits for a release that does not come.
func TestHeldDoorsClose(t *testing.T) {
	d := NewDoors((&takers{}).serve)
	d.Inherit(nil, true)
	c, err := d.Prepare([]Door{freeDoor(t)})
	if err != nil {
		t.Fatal(err)
	}
	c.Commit()
	d.Close()
}

// TestADoorThatClosesTakesWhatWaits: who has connected is served, and who comes later is not let in.
func TestADoorThatClosesTakesWhatWaits(t *testing.T) {
	s := &takers{text: "hello "}
	busy := make(chan struct{})
	d := NewDoors(func(l net.Listener, door Door) error { <-busy; return s.serve(l, door) })
	at := freeDoor(t)
	c, err := d.Prepare([]Door{at})
	if err != nil {
		t.Fatal(err)
	}
	c.Commit()
	var waiting []net.Conn
	for range 5 {
		c, err := net.Dial("tcp", at.Addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		waiting = append(waiting, c)
	}
	closed := make(chan struct{})
	go func() { d.Close(); close(closed) }()
	for !d.open[at.Addr].isClosing() {
		runtime.Gosched()
	}
	close(busy)
	for i, c := range waiting {
		if text, err := io.ReadAll(c); err != nil || string(text) != "hello 0s" {
			t.Errorf("client %d got %q, %v", i, text, err)
		}
	}
	<-closed
	if reachable(at) {
		t.Error("the door is open")
	}
}

// TestASharedSocketStaysOpen: closing a door takes nothing from another process that has the socket too, not even for a moment.
func TestASharedSocketStaysOpen(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := again(ln) // as another process has it
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	d := NewDoors((&takers{text: "one "}).serve)
	d.Inherit(func(string, string) (net.Listener, bool, error) { return ln, true, nil }, false)
	at := door(t, ln.Addr().String())
	c, err := d.Prepare([]Door{at})
	if err != nil {
		t.Fatal(err)
	}
	c.Commit()
	d.Close()
	go func() { _ = (&takers{text: "other "}).serve(other, at) }()
	if got := said(t, at); got != "other 0s" {
		t.Errorf("%q", got)
	}
}

// TestAClosingSocketHearsNoMore: handshakes that begin get no answer, what was let in before goes on.
func TestAClosingSocketHearsNoMore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("filters of sockets are Linux's")
	}
	at := freeDoor(t)
	ln, err := listen(at)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	early, err := net.Dial("tcp", at.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	hearNoMore(raw)
	if c, err := net.DialTimeout("tcp", at.Addr.String(), 50*time.Millisecond); err == nil {
		_ = c.Close()
		t.Error("somebody was let in")
	}
	if n, known := waiting(raw); n != 1 || !known {
		t.Errorf("%d wait, %v", n, known)
	}
	go func() {
		if c, err := ln.Accept(); err == nil {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	_, _ = io.WriteString(early, "hello")
	if err := early.(*net.TCPConn).CloseWrite(); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(early); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if n, known := waiting(raw); n != 0 || !known {
		t.Errorf("%d wait, %v", n, known)
	}
}
