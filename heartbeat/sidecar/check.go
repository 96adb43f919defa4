package sidecar

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Check tells whether the service is well: nil, or why not. It must heed its context, which ends after CheckTimeout.
type Check func(ctx context.Context) error

// ParseCheck makes a check of its text form:
//
//	http://host:port/path or https://…   GET answers 2xx or 3xx
//	tcp://host:port                      a connection can be made
//	exec:command line                    the shell's exit code is 0
//	none                                 always well
func ParseCheck(text string) (Check, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	switch scheme {
	case "http", "https":
		return HTTP(text, HTTPOptions{})
	case "tcp":
		address := strings.TrimPrefix(rest, "//")
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return nil, fmt.Errorf("check %q: want tcp://host:port", text)
		}
		return TCP(address), nil
	case "exec":
		if strings.TrimSpace(rest) == "" {
			return nil, fmt.Errorf("check %q: want exec:command line", text)
		}
		return Command("/bin/sh", "-c", rest), nil
	case "none":
		if rest == "" {
			return func(context.Context) error { return nil }, nil
		}
	}
	return nil, fmt.Errorf("check %q: want http://…, https://…, tcp://host:port, exec:command line or none", text)
}

// HTTPOptions refine an HTTP check.
type HTTPOptions struct {
	Host     string // Host header and TLS server name; default: the URL's
	Insecure bool   // accept any certificate
}

// HTTP checks by a GET: 2xx and 3xx are well. Redirects are not followed, proxies of the environment not used, and each
// check makes a connection of its own, since a service that takes no new connection is not well.
func HTTP(rawURL string, opt HTTPOptions) (Check, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("check %q: want http://host:port/path or https://…", rawURL)
	}
	serverName, _, err := net.SplitHostPort(opt.Host)
	if err != nil {
		serverName = opt.Host
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{ServerName: serverName, InsecureSkipVerify: opt.Insecure}, //nolint:gosec // asked for
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		req.Host = opt.Host
		req.Header.Set("User-Agent", "upstrand-beat")
		res, err := client.Do(req)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		defer res.Body.Close()
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
		if res.StatusCode < 200 || res.StatusCode > 399 {
			return fmt.Errorf("check: GET %s: status %d", u.Redacted(), res.StatusCode)
		}
		return nil
	}, nil
}

// TCP checks that a connection to host:port can be made.
func TCP(address string) Check {
	return func(ctx context.Context) error {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		return c.Close()
	}
}

// maxCheckOutput bounds what an error quotes of a command's output.
const maxCheckOutput = 512

// Command checks that a command ends with exit code 0. When its time is over its whole process group is killed.
func Command(name string, args ...string) Check {
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.SysProcAttr = ownGroup()
		cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
		cmd.WaitDelay = time.Second
		out := &head{limit: maxCheckOutput}
		cmd.Stdout, cmd.Stderr = out, out
		run := &running{cmd: cmd}
		if err := run.start(); err != nil {
			return fmt.Errorf("check: %s: %w", name, err)
		}
		<-run.done
		err := run.result
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if text := strings.TrimSpace(out.String()); text != "" {
			return fmt.Errorf("check: %s: %w: %q", name, err, text)
		}
		return fmt.Errorf("check: %s: %w", name, err)
	}
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	limit int
}

func (h *head) Write(p []byte) (int, error) {
	if room := h.limit - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// hostPort joins an ip, with or without brackets, and a port.
func hostPort(ip string, port int) string {
	ip = strings.TrimSuffix(strings.TrimPrefix(ip, "["), "]")
	if a, err := netip.ParseAddr(ip); err == nil {
		ip = a.Unmap().String()
	}
	return net.JoinHostPort(ip, strconv.Itoa(port))
}

// killGroup kills a process group. That it is gone already is no error.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process group %d: %w", pid, err)
	}
	return nil
}
