package figures

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of time in /proc/PID/stat: Linux shows 100 a second to user space whatever it counts in itself.
const tick = 10 * time.Millisecond

// CPU is processor time of a process with all of its threads, those that have ended included.
type CPU struct {
	User   time.Duration `json:"user"`
	System time.Duration `json:"system"`
}

// Total is both.
func (c CPU) Total() time.Duration { return c.User + c.System }

// Sub is what was used since before.
func (c CPU) Sub(before CPU) CPU { return CPU{c.User - before.User, c.System - before.System} }

// CPUOf reads what the process has used so far, exact to 10 ms. Linux only.
func CPUOf(pid int) (CPU, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return CPU{}, err
	}
	cpu, err := parseStat(string(text))
	if err != nil {
		return CPU{}, fmt.Errorf("%s: %w", name, err)
	}
	return cpu, nil
}

// parseStat takes utime and stime, fields 14 and 15 of proc_pid_stat(5). The second field is a name that may hold blanks and brackets.
func parseStat(text string) (CPU, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return CPU{}, errors.New("no name in brackets")
	}
	f := strings.Fields(text[end+1:])
	if len(f) < 13 {
		return CPU{}, fmt.Errorf("%d fields after the name, wanted 13 or more", len(f))
	}
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return CPU{}, fmt.Errorf("utime: %w", err)
	}
	system, err := strconv.ParseInt(f[12], 10, 64)
	if err != nil {
		return CPU{}, fmt.Errorf("stime: %w", err)
	}
	return CPU{time.Duration(user) * tick, time.Duration(system) * tick}, nil
}

// ResidentOf reads the bytes of memory that the process occupies (VmRSS). Linux only.
func ResidentOf(pid int) (int64, error) {
	name := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	n, err := parseResident(string(text))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func parseResident(text string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kib, ok := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		if !ok {
			return 0, fmt.Errorf("VmRSS is %q, wanted a number of kB", strings.TrimSpace(rest))
		}
		n, err := strconv.ParseInt(kib, 10, 64)
		return n * 1024, err
	}
	return 0, errors.New("no line VmRSS")
}
