package script

import (
	"strings"
	"testing"
	"time"
)

// TestNamesOfManyDots: what a lookup costs grows no faster than the name, which clients choose.
func TestNamesOfManyDots(t *testing.T) {
	var n Names[string]
	for i := range 20 { // a map of few names compares lengths before all else
		part := string(rune('a' + i))
		for _, name := range []string{"*." + part + ".com", "www." + part + ".*"} {
			if err := n.Add(name, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	dots := strings.Repeat("a.", 100_000)
	began := time.Now()
	for name, want := range map[string]string{dots + "a.com": "*.a.com", "www.a." + dots + "a": "www.a.*", dots + "a": ""} {
		if got, _ := n.Find(name); got != want {
			t.Errorf("…%s: %q, want %q", name[len(name)-12:], got, want)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestMapsInACircle end, with nothing, however often each asks for the other.
func TestMapsInACircle(t *testing.T) {
	for name, once := range map[string]bool{"kept": true, "volatile": false} {
		t.Run(name, func(t *testing.T) {
			c := NewCompiler(known())
			for _, of := range [][2]string{{"one", "$two$two$two"}, {"two", "$one$one$one"}} {
				m := NewMapping(mustTemplate(t, c, of[1]), false)
				if err := m.Default(mustTemplate(t, c, "x"+of[1])); err != nil {
					t.Fatal(err)
				}
				if err := c.Define(of[0], once, m.Value); err != nil {
					t.Fatal(err)
				}
			}
			after := mustTemplate(t, c, "$a")
			circle := mustTemplate(t, c, "$one")
			if u := c.Finish(); len(u) > 0 {
				t.Fatal(u)
			}
			done := make(chan string, 1)
			go func() {
				r := begin(c, map[string]string{"a": "A"})
				_ = circle.Value(r)
				done <- after.Value(r)
			}()
			select {
			case got := <-done:
				if got != "A" {
					t.Errorf("%q afterwards", got)
				}
			case <-time.After(5 * time.Second):
				t.Fatal("no end")
			}
		})
	}
}
