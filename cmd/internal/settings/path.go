package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// fileProblems reports a file that is named but can't be opened, or whose content look refuses.
func fileProblems(flag, path string, look func(string) error) Problems {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return Problems{{Flag: flag, Value: path, Allowed: "a readable file is needed: " + reason(err)}}
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return Problems{{Flag: flag, Value: path, Allowed: "a file is needed, this is a folder"}}
	}
	if look == nil {
		return nil
	}
	if err := look(path); err != nil {
		return Problems{{Flag: flag, Value: path, Allowed: err.Error()}}
	}
	return nil
}

// dirProblems reports a folder that can be neither written to nor made. Rights alone do not tell that (the file system may
// be read-only, or of a kind that takes no files), so a file is made where the folder is or would be, and removed at once.
func dirProblems(flag, path string) Problems {
	if path == "" {
		return nil
	}
	at := filepath.Clean(path)
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return Problems{{Flag: flag, Value: path, Allowed: "a folder is needed, " + at + " is a file"}}
		}
		if up := filepath.Dir(at); errors.Is(err, fs.ErrNotExist) && up != at {
			at = up
			continue
		}
		if err == nil {
			err = probe(at)
		}
		if err != nil {
			return Problems{{Flag: flag, Value: path, Allowed: fmt.Sprintf("a folder that can be written to is needed: %s: %s", at, reason(err))}}
		}
		return nil
	}
}

func probe(dir string) error {
	f, err := os.CreateTemp(dir, ".upstrand-probe-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// reason is the cause of a file error without the path, which the problem already shows.
func reason(err error) string {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
