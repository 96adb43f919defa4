package topology

import (
	"slices"
	"testing"
)

func TestFaultError(t *testing.T) {
	n := &Node{Name: "listen", Args: []string{"a b", "80"}, File: "x.conf", Line: 3}
	for _, tc := range []struct {
		fault Fault
		want  string
	}{
		{n.Fault("no such port", "1 to 65535"), "x.conf:3: listen: no such port; allowed: 1 to 65535"},
		{n.Fault("twice", ""), "x.conf:3: listen: twice"},
		{Fault{File: "x.conf", Reason: "no such file"}, "x.conf: no such file"},
	} {
		if got := tc.fault.Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
	if got, want := n.String(), `listen "a b" 80;`; got != want {
		t.Errorf("node %q, want %q", got, want)
	}
	if got, want := (&Node{Name: "location", Args: []string{"/"}, HasBlock: true}).String(), "location / {…}"; got != want {
		t.Errorf("node %q, want %q", got, want)
	}
}

func TestSortFaults(t *testing.T) {
	a, b, c := Fault{File: "a", Line: 9}, Fault{File: "b", Line: 1, Name: "x"}, Fault{File: "b", Line: 1, Name: "y"}
	if got := SortFaults([]Fault{c, a, b, a, c}); !slices.Equal(got, []Fault{a, b, c}) {
		t.Errorf("%v", got)
	}
}
