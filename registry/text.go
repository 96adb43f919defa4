package registry

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// cutText makes text fit a column of n characters: valid UTF-8 without NUL, cut at a character's border.
func cutText(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	i := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s[:i] + "…"
}

// cutASCII makes text fit a column of n ASCII characters.
func cutASCII(s string, n int) string {
	if len(s) <= n && isASCII(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if b.Len() == n {
			break
		}
		if r <= ' ' || r > '~' {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// seconds writes a duration as people read ages: "31.0 s", "30 s" when it is whole and exact is not asked for.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
}

// plain writes a setting: "30 s", "1.5 s".
func plain(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// differences says in words what changed between two sets of attributes, empty when nothing did.
func differences(old, new *Attrs) string {
	var d []string
	str := func(name, a, b string) {
		if a != b {
			d = append(d, fmt.Sprintf("%s %q → %q", name, a, b))
		}
	}
	num := func(name string, a, b int) {
		if a != b {
			d = append(d, fmt.Sprintf("%s %d → %d", name, a, b))
		}
	}
	dur := func(name string, a, b time.Duration) {
		if a != b {
			d = append(d, fmt.Sprintf("%s %s → %s", name, plain(a), plain(b)))
		}
	}
	if a, b := address(old), address(new); a != b {
		d = append(d, "address "+a+" → "+b)
	}
	num("weight", old.Weight, new.Weight)
	str("scheme", old.Scheme, new.Scheme)
	str("url", old.URL, new.URL)
	str("zone", old.Zone, new.Zone)
	str("version", old.Version, new.Version)
	num("max_conns", old.MaxConns, new.MaxConns)
	num("max_fails", old.MaxFails, new.MaxFails)
	dur("fail_timeout", old.FailTimeout, new.FailTimeout)
	dur("slow_start", old.SlowStart, new.SlowStart)
	str("tags", strings.Join(old.Tags, ","), strings.Join(new.Tags, ","))
	if !sameMeta(old.Meta, new.Meta) {
		d = append(d, "meta")
	}
	return strings.Join(d, ", ")
}
