package proxy

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// takers answers each connection with the text of the moment.
type takers struct{ text string }

func (s *takers) serve(l net.Listener, d Door) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = c.Write([]byte(s.text + d.Limits.Header.String()))
		_ = c.Close()
	}
}

func door(t *testing.T, addr string) Door {
	t.Helper()
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return Door{Addr: a}
}

// freeDoor is a door at a port that was free a moment ago.
func freeDoor(t *testing.T) Door {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return door(t, l.Addr().String())
}

func reachable(d Door) bool {
	c, err := net.DialTimeout("tcp", d.Addr.String(), 2*time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	n, _ := c.Read(make([]byte, 8))
	return n > 0
}

func said(t *testing.T, d Door) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", d.Addr.String(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Other limits are for those who come after the change; nobody is refused while it is made.
func TestADoorGoesOnUnderOtherLimits(t *testing.T) {
	d := NewDoors((&takers{"hello "}).serve)
	defer d.Close()
	a := freeDoor(t)
	a.Limits.Header = time.Second
	change(t, d, a)
	if got := said(t, a); got != "hello 1s" {
		t.Fatalf("%q", got)
	}
	a.Limits.Header = time.Minute
	change(t, d, a)
	if got := said(t, a); got != "hello 1m0s" {
		t.Fatalf("%q", got)
	}
}

func change(t *testing.T, d *Doors, list ...Door) {
	t.Helper()
	c, err := d.Prepare(list)
	if err != nil {
		t.Fatal(err)
	}
	c.Commit()
}

func TestDoorsOpenAndCloseAsTheListSays(t *testing.T) {
	d := NewDoors((&takers{"hello"}).serve)
	defer d.Close()
	a, b, c := freeDoor(t), freeDoor(t), freeDoor(t)
	change(t, d, a, b)
	kept := d.open[a.Addr]
	if !reachable(a) || !reachable(b) || reachable(c) {
		t.Fatal("want a and b open")
	}
	change(t, d, a, c)
	if !reachable(a) || reachable(b) || !reachable(c) {
		t.Fatal("want a and c open")
	}
	if d.open[a.Addr] != kept {
		t.Error("a door that stays was opened anew")
	}
	select {
	case err := <-d.Failed():
		t.Errorf("closing on purpose is no failure: %v", err)
	default:
	}
}

func TestDoorsThatCantOpenChangeNothing(t *testing.T) {
	d := NewDoors((&takers{"hello"}).serve)
	defer d.Close()
	a, b := freeDoor(t), freeDoor(t)
	change(t, d, a)
	other, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := d.Prepare([]Door{b, door(t, other.Addr().String())}); err == nil {
		t.Fatal("a port that another one has was opened")
	}
	if !reachable(a) || reachable(b) {
		t.Error("a failed change must leave what was")
	}
	change(t, d, b) // the lock was given back
}

func TestDoorsPreparedAndAbandoned(t *testing.T) {
	d := NewDoors((&takers{"hello"}).serve)
	defer d.Close()
	a, b := freeDoor(t), freeDoor(t)
	change(t, d, a)
	c, err := d.Prepare([]Door{b})
	if err != nil {
		t.Fatal(err)
	}
	c.Abandon()
	if !reachable(a) || reachable(b) {
		t.Error("want a alone")
	}
}

func TestAWildcardAndItsAddressesShareASocket(t *testing.T) {
	d := NewDoors((&takers{"hello"}).serve)
	defer d.Close()
	one := freeDoor(t)
	all := Door{Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), one.Addr.Port())}
	change(t, d, one)
	change(t, d, one, all) // the wildcard needs the place of the single one
	if !reachable(one) || len(d.Addrs()) != 1 {
		t.Fatalf("open: %v", d.Addrs())
	}
	change(t, d, one)
	if !reachable(one) || len(d.Addrs()) != 1 || d.Addrs()[0] != one.Addr.String() {
		t.Fatalf("open: %v", d.Addrs())
	}
}

// TestAWildcardSpeaksForItsAddresses: what clients may speak at an address they may at the socket that takes its connections.
func TestAWildcardSpeaksForItsAddresses(t *testing.T) {
	all, one, other := door(t, "0.0.0.0:1"), door(t, "127.0.0.1:1"), door(t, "127.0.0.1:2")
	one.TLS, one.HTTP2 = true, true
	want := all
	want.TLS, want.HTTP2 = true, true
	for _, list := range [][]Door{{all, one, other}, {one, other, all}} {
		if got := distinct(list); len(got) != 2 || got[all.Addr] != want || got[other.Addr] != other {
			t.Errorf("%v", got)
		}
	}
	if got := distinct([]Door{all, other, {Addr: netip.MustParseAddrPort("[::1]:1"), TLS: true}}); len(got) != 3 || got[all.Addr] != all {
		t.Errorf("another family: %v", got)
	}
}

// A socket has SO_REUSEPORT from the beginning or never, so the door is opened anew.
func TestADoorChangesItsKindOfSocket(t *testing.T) {
	d := NewDoors((&takers{"hello"}).serve)
	defer d.Close()
	plain := freeDoor(t)
	shared := plain
	shared.Reuse = true
	change(t, d, plain)
	for _, next := range []Door{shared, plain} {
		change(t, d, next)
		if !reachable(next) || d.open[next.Addr].door != next {
			t.Fatalf("open: %+v", d.open[next.Addr].door)
		}
	}
	other, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := door(t, other.Addr().String())
	if _, err := d.Prepare([]Door{shared, taken}); err == nil {
		t.Fatal("a port that another one has was opened")
	}
	if !reachable(plain) || d.open[plain.Addr].door != plain {
		t.Errorf("a failed change must leave what was: %+v", d.open[plain.Addr].door)
	}
	select {
	case err := <-d.Failed():
		t.Errorf("closing on purpose is no failure: %v", err)
	default:
	}
}

// An engine closes what it serves, before or after the door does.
func TestADoorAndItsEngineBothClose(t *testing.T) {
	lent, closed := make(chan net.Listener, 1), make(chan struct{})
	d := NewDoors(func(l net.Listener, _ Door) error { lent <- l; <-closed; return nil })
	change(t, d, freeDoor(t))
	l := <-lent
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	close(closed)
	d.Close()
}

func TestADoorThatFailsIsTold(t *testing.T) {
	broken := errors.New("broken")
	d := NewDoors(func(net.Listener, Door) error { return broken })
	defer d.Close()
	change(t, d, freeDoor(t))
	if err := <-d.Failed(); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
