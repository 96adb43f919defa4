package ops

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/upstrand/upstrand/registry/client"
	"github.com/upstrand/upstrand/registry/wire"
)

// refused tells why a change was not made: each fault on a line of its own, by the file that it is in.
func (ch *change) refused(file, name string, err error) error {
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Problem == nil {
		return err
	}
	switch p := answer.Problem; {
	case client.IsConflict(err):
		return &explained{p.Detail + ": run the command again to see what it does now", err}
	case answer.Status != http.StatusUnprocessableEntity || len(p.Errors) == 0:
		return err
	case ch.out.json:
		if err := ch.out.value(p); err != nil {
			return err
		}
	default:
		for _, e := range p.Errors {
			text := e.Message
			if e.Allowed != "" {
				text += "; allowed: " + e.Allowed
			}
			fmt.Fprintf(ch.out.out, "%s: %s\n", cell(inFile(e.Location, file, name)), cell(text))
		}
	}
	return &explained{fmt.Sprintf("%s (%s); nothing was changed", answer.Problem.Detail, counted(len(answer.Problem.Errors), "fault")), err}
}

// inFile is a place with the file's own name, where it is of the declared name.
func inFile(place, file, name string) string {
	if rest, ok := strings.CutPrefix(place, name+":"); ok && file != "" {
		return file + ":" + rest
	}
	if place == name && file != "" {
		return file
	}
	return place
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// show prints what becomes of the topology: + for what comes, - for what goes, ~ for what is another.
func (ch *change) show(file, name string, a wire.DeclareAnswer) {
	w := ch.out.out
	for _, r := range a.Warnings {
		place := r.File
		if r.Line > 0 {
			place = fmt.Sprintf("%s:%d", r.File, r.Line)
		}
		text := r.Message
		if r.Directive != "" {
			text = r.Directive + ": " + text
		}
		if r.Allowed != "" {
			text += "; allowed: " + r.Allowed
		}
		fmt.Fprintf(w, "warning: %s: %s\n", cell(inFile(place, file, name)), cell(text))
	}
	for _, c := range a.Changes {
		fmt.Fprintf(w, "%s %s %s%s\n", mark(c), c.Kind, cell(c.Name), note(c))
		for _, line := range differing(linesOf(c.Before), linesOf(c.After)) {
			fmt.Fprintf(w, "    %s\n", cell(line))
		}
	}
	fmt.Fprintln(w, a.Summary)
}

func mark(c wire.TopologyChange) string {
	switch c.Change {
	case wire.ChangeAdded:
		return "+"
	case wire.ChangeRemoved:
		return "-"
	}
	return "~"
}

// note says what the lines of a change do not.
func note(c wire.TopologyChange) string {
	var said []string
	switch {
	case c.Change == wire.ChangeGivesWay:
		said = append(said, "the derived one gives way")
	case c.Change == wire.ChangeReturns:
		said = append(said, "the derived one returns")
	case c.Before != nil && c.Before.Origin == "derived" || c.After != nil && c.After.Origin == "derived":
		said = append(said, "derived")
	}
	before, after := peersOf(c.Before), peersOf(c.After)
	switch {
	case before == nil && after == nil:
	case before == nil || after != nil && *before == *after:
		said = append(said, counted(*after, "peer"))
	case after == nil:
		said = append(said, counted(*before, "peer"))
	default:
		said = append(said, fmt.Sprintf("%d → %s", *before, counted(*after, "peer")))
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

func peersOf(s *wire.TopologySide) *int {
	if s == nil {
		return nil
	}
	return s.Peers
}

func linesOf(s *wire.TopologySide) []string {
	if s == nil {
		return nil
	}
	return s.Lines
}

// differing is the lines of both with "- " before those that go, "+ " before those that come, and blanks before those that
// stay. It is the longest common subsequence, as diff has it.
func differing(a, b []string) []string {
	if len(a)*len(b) > 1<<20 { // more than anybody reads
		return []string{fmt.Sprintf("- %d lines", len(a)), fmt.Sprintf("+ %d lines", len(b))}
	}
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	for _, line := range a[i:] {
		out = append(out, "- "+line)
	}
	for _, line := range b[j:] {
		out = append(out, "+ "+line)
	}
	return slices.Clip(out)
}
