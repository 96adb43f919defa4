package ops

import (
	"slices"
	"strings"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
)

// kindsText lists the kinds of events.
func kindsText() string { return "Kinds of events: " + list(registry.EventKinds()) + "." }

// reasonsText lists why records are rejected.
func reasonsText() string {
	var words []string
	for _, r := range heartbeat.Reasons() {
		words = append(words, string(r))
	}
	return "Reasons: " + list(slices.Concat(words, registry.RejectedReasons())) + "."
}

// list joins words on lines that fit a terminal.
func list(words []string) string {
	const most = 100
	var text strings.Builder
	column := 20
	for i, w := range words {
		if i > 0 {
			text.WriteString(",")
			if column += len(w) + 2; column > most {
				text.WriteString("\n")
				column = len(w)
			} else {
				text.WriteString(" ")
			}
		}
		text.WriteString(w)
	}
	return text.String()
}
