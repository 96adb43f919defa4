package syntax

import (
	"strings"
	"testing"
)

func TestOnce(t *testing.T) {
	for _, name := range onceOnly {
		var o Once
		if o.Again([]byte(name)) {
			t.Errorf("the first %s is taken for a second one", name)
		}
		for _, other := range onceOnly {
			if other != name && o.Again([]byte(strings.ToUpper(other))) {
				t.Errorf("after %s the first %s is taken for a second one", name, other)
			}
		}
		if !o.Again([]byte(strings.ToUpper(name))) {
			t.Errorf("a second %s is not found", name)
		}
	}
	for _, name := range []string{"", "accept", "if-mated", "x-authorizati", "accept-encoding", "cookie", "if-match", "if-none-match"} {
		var o Once
		_ = o.Again([]byte(name))
		if o.Again([]byte(name)) {
			t.Errorf("%q may stand more than once", name)
		}
	}
}
