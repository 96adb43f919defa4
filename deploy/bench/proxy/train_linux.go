package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// learnt is where the compiler looks for a profile when it builds us, from the top of the repository.
const learnt = "cmd/upstrand/default.pgo"

// lessonTime is how long each row is looked at: only a quarter of the time is spent in our own code, with a hundred samples a second.
const lessonTime = 30 * time.Second

// lessons are the rows that the compiler learns from: what most requests are like, with each way to speak to clients.
var lessons = regexp.MustCompile(`^(get-64|post-4k|get-100k|log-64|tls-64|h2-64)$`)

// train writes the profile by which the compiler chooses what to inline when it builds us. Rows count by the time that they took.
func train(ctx context.Context, b *bench) error {
	c, err := makers["upstrand"](ctx, b)
	if err != nil {
		return err
	}
	defer c.stop()
	merge := []string{"tool", "pprof", "-proto"}
	for _, r := range chosen(rows, lessons) {
		file := filepath.Join(b.dir, r.name+".pb.gz")
		res, _, err := b.fetchDuring(ctx, c, r, "/debug/pprof/profile", file, lessonTime)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		fmt.Fprintf(b.out, "%s: %.1f µs a request\n", r.what, us(res.Cost()))
		merge = append(merge, file)
	}
	merged, err := exec.CommandContext(ctx, "go", merge...).Output()
	if err != nil {
		return fmt.Errorf("go tool pprof -proto: %w", err)
	}
	if err := os.WriteFile(learnt, merged, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%s: %d bytes\n", learnt, len(merged))
	return nil
}
