package confgen

import (
	"fmt"
	"strings"
)

// causesShown is how many causes of a version are spelled out. Each is at most some 300 bytes, and the registry's column
// for all of them holds 1024 characters.
const (
	causesShown = 3
	causeLimit  = 300
)

// causes collects what led to the next version, for people.
type causes struct {
	shown []string
	more  int
}

// add takes one; id may be empty.
func (c *causes) add(name, id, what string) {
	if len(c.shown) == causesShown {
		c.more++
		return
	}
	if id != "" {
		name += "/" + id
	}
	c.shown = append(c.shown, cut(name+" "+what, causeLimit))
}

// take is the text, such as "orders/a7 joined; billing/b2 left (+3 more)"; the causes are empty afterwards.
func (c *causes) take() string {
	text := strings.Join(c.shown, "; ")
	if c.more > 0 {
		text += fmt.Sprintf(" (+%d more)", c.more)
	}
	*c = causes{}
	return text
}

// cut shortens s to at most n bytes without cutting a character in two.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
