package script

import (
	"strings"
	"testing"
)

// FuzzTemplate: any text compiles or is refused, and what compiles gives back its literal parts.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "$", "${", "$a", "${a}", "$1$2", "a${a}b$arg_x", "$$", "${}", "$1${1}", "\xff$a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := NewCompiler(known())
		tpl, err := c.Template(nil, text)
		if err != nil {
			if !strings.Contains(text, "$") {
				t.Fatalf("%q without a variable: %v", text, err)
			}
			return
		}
		if len(c.Finish()) > 0 {
			return // its variables can't be read
		}
		r := begin(c, map[string]string{"a": "A"})
		got := tpl.Value(r)
		if again := string(tpl.Append(nil, r)); again != got && !strings.Contains(strings.ToLower(text), "count") {
			t.Fatalf("%q: %q, then %q", text, got, again)
		}
		if !strings.Contains(text, "$") && got != text {
			t.Fatalf("%q: %q", text, got)
		}
	})
}
