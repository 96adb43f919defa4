package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/upstrand/upstrand/deploy/bench/figures"
)

// profileTime is how long a profile looks.
const profileTime = 5 * time.Second

// profile looks into ourselves, in each row that -rows asks for (absent: small requests on 64 connections).
func profile(ctx context.Context, b *bench) error {
	if err := os.MkdirAll(b.keep, 0o755); err != nil {
		return fmt.Errorf("-profiles: %w", err)
	}
	c, err := makers["upstrand"](ctx, b)
	if err != nil {
		return err
	}
	defer c.stop()
	todo := chosen(rows, b.rows)
	if b.rows.String() == "." {
		todo = rows[1:2]
	}
	for _, r := range todo {
		if err := b.profileRow(ctx, c, r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return b.calls(ctx, c, todo)
}

func (b *bench) profileRow(ctx context.Context, c *contender, r row) error {
	program, err := b.ours(ctx, variant{})
	if err != nil {
		return err
	}
	kept := filepath.Join(b.keep, "upstrand") // the profiles are read with it later
	if err := copyFile(kept, program); err != nil {
		return err
	}
	for _, p := range []struct{ kind, path, top string }{
		{"cpu", "/debug/pprof/profile", "-nodecount=45"},
		{"allocs", "/debug/pprof/allocs", "-sample_index=alloc_space"},
	} {
		file := filepath.Join(b.keep, r.name+"-"+p.kind+".pb.gz")
		res, mallocs, err := b.fetchDuring(ctx, c, r, p.path, file, profileTime)
		if err != nil {
			return err
		}
		top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", p.top, kept, file).Output()
		if err != nil {
			return fmt.Errorf("go tool pprof -top %s: %w", file, err)
		}
		fmt.Fprintf(b.out, "\n%s, %s: %s: %.1f µs a request (%.1f user, %.1f system), %.2f allocations\n%s", r.what, p.kind, file,
			us(res.Cost()), micro(res.CPU.User.Nanoseconds(), res.Requests), micro(res.CPU.System.Nanoseconds(), res.Requests), mallocs, firstLines(string(top), 50))
	}
	return nil
}

// fetchDuring gets a profile from the admin address into a file while a burst of the same length runs, and counts allocations over the burst.
func (b *bench) fetchDuring(ctx context.Context, c *contender, r row, path, file string, length time.Duration) (res figures.Result, mallocs float64, err error) {
	before, err := metric(ctx, c.admin, "go_memstats_mallocs_total")
	if err != nil {
		return res, 0, err
	}
	failed := make(chan error, 1)
	go func() {
		time.Sleep(b.warm)
		failed <- fetch(ctx, fmt.Sprintf("http://%s%s?seconds=%d", c.admin, path, int(length.Seconds())), file)
	}()
	args := r.arguments(c.doors[r.door], 0, length+b.warm, c.proc.Pid())
	res, err = b.load(ctx, args...)
	if err = errors.Join(err, res.Err(), <-failed); err != nil {
		return res, 0, err
	}
	after, err := metric(ctx, c.admin, "go_memstats_mallocs_total")
	return res, (after - before) / float64(res.Requests), err
}

func fetch(ctx context.Context, url, file string) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// metric reads one number from the page of metrics.
func metric(ctx context.Context, admin, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return findMetric(resp.Body, name)
}

func findMetric(page io.Reader, name string) (float64, error) {
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("no metric %s", name), lines.Err())
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

func firstLines(text string, n int) string {
	lines := strings.SplitAfterN(text, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "")
}
