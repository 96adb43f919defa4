package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// names is what a server shows now.
func names(t *testing.T, s *Server) string {
	t.Helper()
	c, err := s.Config(false).GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(c.Leaf.DNSNames, " ")
}

// TestChangedFiles: a change counts when it has settled; what is broken leaves the old in force and is told once.
func TestChangedFiles(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"one"}))
	var told []string
	s := &Store{Watch: func(e Event) {
		switch {
		case e.Err != nil:
			told = append(told, e.Err.Error())
		default:
			told = append(told, "used "+strings.Join(e.Files, " "))
		}
	}}
	server, err := s.Server(Settings{Pairs: []Pair{{cert, key}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	look := func(step, want string, events ...string) {
		t.Helper()
		told = nil
		s.Look(false)
		if got := names(t, server); got != want || len(told) != len(events) {
			t.Fatalf("%s: %s, told %q", step, got, told)
		}
		for i := range events {
			if !strings.Contains(told[i], events[i]) {
				t.Errorf("%s: told %q, want %q", step, told[i], events[i])
			}
		}
	}
	look("nothing", "one")
	certstest.Write(t, dir, "a", ca.Leaf([]string{"two"}))
	look("first look", "one")
	look("second look", "two", "used "+cert+" "+key)
	look("nothing again", "two")
	text, _ := certstest.Texts(t, ca.Leaf([]string{"three"})) // its key is still to come
	certstest.Put(t, cert, text)
	look("half of it", "two")
	look("half of it is no pair", "two", "does not belong")
	look("which is told once", "two")
	server.retry = time.Now()
	look("and again after a while", "two", "does not belong")
	look("but not at once", "two")
	certstest.Write(t, dir, "a", ca.Leaf([]string{"four"}))
	look("whole", "two")
	look("whole, settled", "four", "used")
	_ = os.Remove(key)
	look("gone", "four")
	look("gone, settled", "four", "no such file")
	certstest.Write(t, dir, "a", ca.Leaf([]string{"five"}))
	if err := os.Chmod(key, 0o400); err != nil { // as one that was not readable before
		t.Fatal(err)
	}
	s.Look(true)
	if got := names(t, server); got != "five" {
		t.Errorf("at once: %s", got)
	}
	server.Close()
	certstest.Write(t, dir, "a", ca.Leaf([]string{"six"}))
	told = nil
	s.Look(true)
	if len(s.all) != 0 || len(told) != 0 || names(t, server) != "five" {
		t.Errorf("nobody holds it: %q, %s", told, names(t, server))
	}
}

// TestHeldAgain: what is held already is one and the same, with the files as they are; a configuration that is made anew by
// itself does not fail for files that went meanwhile.
func TestHeldAgain(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"one"}))
	set := Settings{Pairs: []Pair{{cert, key}}}
	s := new(Store)
	first, err := s.Server(set, false)
	if err != nil {
		t.Fatal(err)
	}
	certstest.Write(t, dir, "a", ca.Leaf([]string{"two"}))
	second, err := s.Server(set, false)
	if err != nil || first != second || names(t, first) != "two" {
		t.Fatalf("%v, %s", err, names(t, first))
	}
	_ = os.Remove(cert)
	if _, err := s.Server(set, false); err == nil {
		t.Error("there is no such file")
	}
	third, err := s.Server(set, true)
	if err != nil || third != first || names(t, third) != "two" {
		t.Errorf("%v", err)
	}
	var told []error
	s.Watch = func(e Event) { told = append(told, e.Err) }
	s.Look(false)
	s.Look(false)
	if len(told) != 1 || told[0] == nil {
		t.Errorf("what is kept in spite of its files: told %v", told)
	}
	for i, h := range []*Server{first, second, third} {
		h.Close()
		if left := len(s.all); (left == 0) != (i == 2) {
			t.Errorf("%d are left after %d", left, i)
		}
	}
	if _, err := s.Server(set, true); err == nil {
		t.Error("nobody holds it any more")
	}
}

// TestSwappedFolder: files behind a link to a folder, which is how Kubernetes mounts a secret, change all at once, and even
// between two reads of one load.
func TestSwappedFolder(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	swap := func(name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		certstest.Write(t, filepath.Join(dir, name), "tls", ca.Leaf([]string{name}))
		if err := os.Symlink(name, filepath.Join(dir, "..new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("one")
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	set := Settings{Pairs: []Pair{{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}}}
	var between string
	s := &Store{ReadFile: func(name string) ([]byte, error) {
		text, err := ReadRegular(name)
		if between != "" {
			next := between
			between = ""
			swap(next)
		}
		return text, err
	}}
	between = "two" // behind the read of the certificate
	server, err := s.Server(set, false)
	if err != nil || names(t, server) != "two" {
		t.Fatal(err)
	}
	defer server.Close()
	swap("three")
	between = "four"
	for range 2 {
		s.Look(false)
	}
	if got := names(t, server); got != "four" {
		t.Errorf("%s", got)
	}
}

// TestRunLooks: Run finds a change by itself, and ends.
func TestRunLooks(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"one"}))
	used := make(chan error, 8)
	s := &Store{Every: time.Millisecond, Watch: func(e Event) { used <- e.Err }}
	server, err := s.Server(Settings{Pairs: []Pair{{cert, key}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	certstest.Write(t, dir, "a", ca.Leaf([]string{"two"}))
	for names(t, server) != "two" {
		<-used
	}
	cancel()
	<-done
}

// TestOwnReader: files may come from elsewhere.
func TestOwnReader(t *testing.T) {
	cert, key := certstest.Texts(t, certstest.New(t, "ca").Leaf([]string{"one"}))
	s := &Store{ReadFile: func(name string) ([]byte, error) {
		switch filepath.Base(name) {
		case "c":
			return cert, nil
		case "k":
			return key, nil
		}
		return nil, errors.New("no")
	}}
	server, err := s.Server(Settings{Pairs: []Pair{{"/x/c", "/x/k"}}}, false)
	if err != nil || names(t, server) != "one" {
		t.Fatal(err)
	}
	s.Look(false)
	s.Look(false)
	if names(t, server) != "one" {
		t.Error("it is gone")
	}
	server.Close()
}
