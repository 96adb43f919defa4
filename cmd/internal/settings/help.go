package settings

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// width is the column at which --help breaks its lines. It is fixed, so that help texts are the same everywhere.
const width = 110

// PrintFlags writes the flags of fs under the titles of their groups, each with its default and its environment
// variable. Flags that were not declared through a Group stand under "Flags".
func PrintFlags(w io.Writer, fs *pflag.FlagSet) {
	var titles []string
	groups := map[string][]*pflag.Flag{}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		title := "Flags"
		if a := f.Annotations[groupKey]; len(a) == 1 {
			title = a[0]
		}
		if groups[title] == nil {
			titles = append(titles, title)
		}
		groups[title] = append(groups[title], f)
	})
	for _, title := range titles {
		fmt.Fprintf(w, "\n%s:\n", title)
		for _, f := range groups[title] {
			printFlag(w, f)
		}
	}
}

// printFlag writes the flag, and below it what it means, indented.
func printFlag(w io.Writer, f *pflag.Flag) {
	head := "--" + f.Name
	if f.Shorthand != "" {
		head = "-" + f.Shorthand + ", " + head
	}
	if kind := kindOf(f); kind != "" {
		head += " " + kind
	}
	usage := strings.ReplaceAll(f.Usage, "`", "")
	var notes []string
	if f.DefValue != "" && f.NoOptDefVal != "true" && !isZero(f) {
		notes = append(notes, "default "+f.DefValue)
	}
	if HasEnv(f) {
		notes = append(notes, EnvName(f.Name))
	}
	if notes != nil {
		usage += " (" + strings.Join(notes, ", ") + ")"
	}
	fmt.Fprintf(w, "  %s\n%s", head, wrap(usage, "        "))
}

// isZero says of flags that were not declared through a Group that their default means "not given".
func isZero(f *pflag.Flag) bool {
	_, ours := f.Value.(*value)
	return !ours && (f.DefValue == "0" || f.DefValue == "0s" || f.DefValue == "[]")
}

func kindOf(f *pflag.Flag) string {
	if v, ok := f.Value.(*value); ok {
		return v.kind
	}
	if name, _ := pflag.UnquoteUsage(f); name != "" {
		return strings.ToUpper(name)
	}
	return ""
}

// wrap breaks text at blanks into lines of at most width columns, each with the indent and a line feed.
func wrap(text, indent string) string {
	var b strings.Builder
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && len([]rune(line))+1+len([]rune(word)) > width {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
	return b.String()
}
