package settings

import (
	"os"
)

// value is a pflag.Value that never fails: what it can't use it remembers, for Set.Problems to report with the rest.
type value struct {
	kind    string
	text    string // the value in force, as text
	parse   func(string) error
	bad     string // the last value that could not be used
	problem error
}

func (v *value) String() string { return v.text }

func (v *value) Type() string { return v.kind }

// Set takes the value or remembers why it can't.
func (v *value) Set(s string) error {
	if err := v.parse(s); err != nil {
		v.bad, v.problem = s, err
		return nil
	}
	v.text, v.problem = s, nil
	return nil
}

// readable reports a file that is named but can't be opened.
func readable(flag, path string) Problems {
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
	return nil
}

// reason is the cause of a file error without the path, which the problem already shows.
func reason(err error) string {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
