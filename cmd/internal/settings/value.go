package settings

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
