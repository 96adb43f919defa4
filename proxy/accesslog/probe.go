package accesslog

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// What access(2) is asked for.
const (
	mayEnter = 1
	mayWrite = 2
)

// Probe says what would keep a log of that path from being opened, as far as that shows without opening it: a folder that
// is not there or can't be written to, a file that can't, or what is no file. Nothing is made. A disk that is full, or
// read-only for another reason than rights, shows only when the log is opened.
func Probe(path string) error {
	if standard(path) != nil {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		folder := filepath.Dir(path)
		if err := syscall.Access(folder, mayWrite|mayEnter); err != nil {
			return fmt.Errorf("folder %s: %w", folder, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w", err)
	case !isLog(info):
		return fmt.Errorf("%s is no file", path)
	}
	if err := syscall.Access(path, mayWrite); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
