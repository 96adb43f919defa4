package dialect

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	tableRow = regexp.MustCompile("^\\| `([a-z0-9_]+)` \\| ([^|]+) \\| ([^|]+) \\|")
	quoted   = regexp.MustCompile("`([a-z0-9_]+)`(¹?)")
)

// TestReference keeps REFERENCE.md and the table in step: each directive is on the page with its places and arguments,
// under its class and with its reason, and nothing else is.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]bool{}
	section := ""
	for _, line := range strings.Split(string(text), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		}
		if m := tableRow.FindStringSubmatch(line); m != nil {
			page[strings.Join([]string{"supported", m[1], m[2], m[3]}, " | ")] = true
		}
		item, ok := strings.CutPrefix(line, "- ")
		class := map[string]string{"Notices": "notice", "Refusals": "refused"}[section]
		if !ok || class == "" {
			continue
		}
		why := item[:strings.Index(item, ": `")]
		for _, m := range quoted.FindAllStringSubmatch(item[len(why):], -1) {
			page[strings.Join([]string{class, m[1] + m[2], why}, " | ")] = true
		}
	}
	for _, d := range Directives() {
		key := reference(d)
		if !page[key] {
			t.Errorf("not on the page: %s", key)
		}
		delete(page, key)
	}
	for key := range page {
		t.Errorf("on the page, and not in the table: %s", key)
	}
}

// reference is how a row of the table stands on the page.
func reference(d Directive) string {
	if d.Class != Supported {
		name := d.Name
		if judges[name] != nil {
			name += "¹"
		}
		return strings.Join([]string{d.Class.String(), name, d.Why}, " | ")
	}
	args := d.arguments()
	if d.Block {
		args += " and a block"
	}
	return strings.Join([]string{"supported", d.Name, d.In.String(), args}, " | ")
}
