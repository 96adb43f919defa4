package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is the program under test, with its access log.
type server struct {
	dir  string
	cmd  *exec.Cmd
	done chan struct{}

	read  int64 // bytes of the log that were read
	lines map[string]map[string]string
}

// words fills a command's template.
func words(template []string, conf, dir string) []string {
	out := make([]string, len(template))
	for i, w := range template {
		out[i] = strings.NewReplacer("{conf}", conf, "{dir}", dir).Replace(w)
	}
	return out
}

// start runs the program and waits until it takes connections.
func start(command []string, dir string) (*server, error) {
	out, err := os.Create(filepath.Join(dir, "server.out"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s := &server{dir: dir, done: make(chan struct{}), lines: map[string]map[string]string{}}
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, out, out
	s.cmd.SysProcAttr = dieWithUs()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = s.cmd.Wait(); close(s.done) }()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", listen); err == nil {
			_ = c.Close()
			time.Sleep(50 * time.Millisecond)
			return s, nil
		}
		select {
		case <-s.done:
			return nil, fmt.Errorf("the server did not start: %s", s.output())
		default:
		}
		if time.Since(began) > 15*time.Second {
			return nil, errors.Join(fmt.Errorf("the server does not listen: %s", s.output()), s.end())
		}
	}
}

func (s *server) output() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "server.out"))
	return string(bytes.TrimSpace(text[max(0, len(text)-600):]))
}

// reload makes the program read its file again, and gives it the time for that.
func (s *server) reload() error {
	err := s.cmd.Process.Signal(syscall.SIGHUP)
	time.Sleep(time.Second)
	return err
}

// end ends the program in good order; that it does not end is an error.
func (s *server) end() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
		return nil
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
		return errors.New("the server did not end within 5 s of SIGTERM")
	}
}

// logged waits until the access log has a line for each request, 3 s at most.
func (s *server) logged(rids ...string) error {
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(3 * time.Millisecond) {
		if err := s.readLog(); err != nil {
			return err
		}
		missing := ""
		for _, rid := range rids {
			if s.lines[rid] == nil {
				missing = rid
			}
		}
		if missing == "" || time.Now().After(end) {
			return nil // a missing line shows in what is compared
		}
	}
}

func (s *server) readLog() error {
	f, err := os.Open(filepath.Join(s.dir, "access.log"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, s.read, 1<<30))
	if err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	s.read += int64(len(text))
	for line := range bytes.Lines(text) {
		var values map[string]string
		if err := json.Unmarshal(line, &values); err != nil {
			return fmt.Errorf("a line of the access log is not what log_format asks for: %.200s", line)
		}
		s.lines[values["rid"]] = values
	}
	return nil
}
