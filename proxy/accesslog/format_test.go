package accesslog

import "testing"

func TestEscape(t *testing.T) {
	const nasty = "a\"b\\c\n\r\t\x01\x7fé\b\f"
	for _, tc := range []struct {
		name  string
		e     Escape
		value string
		found bool
		want  string
	}{
		{"default", Default, nasty, true, `a\x22b\x5Cc\x0A\x0D\x09\x01\x7F\xC3\xA9\x08\x0C`},
		{"default, not there", Default, "", false, "-"},
		{"default, empty", Default, "", true, ""},
		{"json", JSON, nasty, true, `a\"b\\c\n\r\t\u0001` + "\x7fé" + `\b\f`},
		{"json, not there", JSON, "", false, ""},
		{"none", None, nasty, true, nasty},
		{"none, not there", None, "", false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(tc.e.Append([]byte(">"), tc.value, tc.found)); got != ">"+tc.want {
				t.Errorf("%q, want %q", got, ">"+tc.want)
			}
		})
	}
	for word, want := range map[string]Escape{"default": Default, "json": JSON, "none": None} {
		if e, ok := ParseEscape(word); !ok || e != want {
			t.Errorf("%s: %v, %v", word, e, ok)
		}
	}
	if _, ok := ParseEscape("html"); ok {
		t.Error("html is no way to escape")
	}
}
