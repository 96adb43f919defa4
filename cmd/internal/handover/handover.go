// Package handover lets a process take another one's place without a connection being refused: the one that runs starts the
// other with its listening sockets, waits until it says that it serves, and leaves. It also takes sockets from systemd, and
// tells systemd how things stand.
//
// It starts and waits; who serves, and what leaving means, is for the processes to know.
package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// variable tells a process which sockets it was given: a JSON list of tags, from descriptor firstSocket on. Descriptor
// firstSocket-1 is the pipe for Ready.
const variable = "UPSTRAND_HANDOVER"

const firstSocket = 4

// Sockets are the listening sockets that this process was given. A nil one has none.
type Sockets struct {
	mu   sync.Mutex
	all  []given
	tell *os.File // to the process whose place this one takes; nil: there is none
}

type given struct {
	tag
	ln net.Listener
}

// tag is what is known of a socket.
type tag struct {
	Name   string `json:"name"`             // network and address as they were asked for; empty: known by where it listens
	Shared bool   `json:"shared,omitempty"` // systemd has it too, and keeps it
}

// Inherit takes what this process was given, by the process whose place it takes or by systemd (LISTEN_FDS), and hides it
// from processes that this one starts. It is called once, before anything is listened on. Descriptors that are no listening
// sockets are an error.
func Inherit() (*Sockets, error) {
	s := &Sockets{}
	if text := os.Getenv(variable); text != "" {
		_ = os.Unsetenv(variable)
		var tags []tag
		if err := json.Unmarshal([]byte(text), &tags); err != nil {
			return nil, fmt.Errorf("%s is %q: want a list of sockets", variable, text)
		}
		syscall.CloseOnExec(firstSocket - 1)
		s.tell = os.NewFile(firstSocket-1, "the process before")
		return s, s.take(firstSocket, tags)
	}
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return s, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 1<<16 {
		return nil, fmt.Errorf("LISTEN_FDS is %q: want a number of sockets", count)
	}
	return s, s.take(3, slices.Repeat([]tag{{Shared: true}}, n))
}

// take makes listeners of the descriptors from first on.
func (s *Sockets) take(first int, tags []tag) error {
	var errs []error
	for i, t := range tags {
		syscall.CloseOnExec(first + i)
		f := os.NewFile(uintptr(first+i), t.Name)
		ln, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			errs = append(errs, fmt.Errorf("descriptor %d (%s) was given to be listened on: %w", first+i, t.Name, err))
			continue
		}
		s.all = append(s.all, given{t, ln})
	}
	return errors.Join(errs...)
}

// Succeeds reports whether this process takes the place of another one, which waits for Ready.
func (s *Sockets) Succeeds() bool { return s != nil && s.tell != nil }

// Listener gives the socket of an address as it is asked for (network tcp, tcp4 or tcp6); nil: there is none. Shared tells
// that systemd keeps it.
func (s *Sockets) Listener(network, addr string) (ln net.Listener, shared bool, err error) {
	if s == nil {
		return nil, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, g := range s.all {
		if g.Name == nameOf(network, addr) || g.Name == "" && listensAt(g.ln, network, addr) {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			return g.ln, g.Shared, nil
		}
	}
	return nil, false, nil
}

func nameOf(network, addr string) string { return network + " " + addr }

// listensAt reports whether a socket that bears no name is at an address.
func listensAt(ln net.Listener, network, addr string) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	if !ok {
		return false
	}
	want, err := net.ResolveTCPAddr(network, addr)
	if err != nil || want.Port != at.Port || want.Port == 0 {
		return false
	}
	if want.IP == nil || want.IP.IsUnspecified() {
		return at.IP.IsUnspecified() && (network != "tcp4" || at.IP.To4() != nil) && (network != "tcp6" || at.IP.To4() == nil)
	}
	return want.IP.Equal(at.IP)
}

// Left names the sockets that nobody asked for.
func (s *Sockets) Left() (names []string) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		names = append(names, strings.TrimSpace(g.Name+" "+g.ln.Addr().String()))
	}
	return names
}

// Ready closes what nobody asked for, and has the process before leave. It is called when this one serves.
func (s *Sockets) Ready() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.all {
		_ = g.ln.Close()
	}
	s.all = nil
	if s.tell == nil {
		return nil
	}
	_, err := s.tell.WriteString(readyText)
	err = errors.Join(err, s.tell.Close())
	s.tell = nil
	if err != nil {
		return fmt.Errorf("tell the process before that this one serves: %w", err)
	}
	return nil
}

const readyText = "ready\n"
