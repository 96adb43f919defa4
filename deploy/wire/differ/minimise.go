package main

import "strings"

// minimise takes away what a finding does not need, with so many tries at most.
func minimise(text string, tries int, still func(string) bool) string {
	for _, split := range []func(string) []string{
		func(s string) []string { return strings.SplitAfter(s, "\r\n\r\n") },
		func(s string) []string { return strings.SplitAfter(s, "\n") },
		func(s string) []string { return pieces(s, 16) },
		func(s string) []string { return pieces(s, 4) },
		func(s string) []string { return pieces(s, 1) },
	} {
		parts := split(text)
		for i := 0; i < len(parts) && tries > 0; {
			less := strings.Join(parts[:i], "") + strings.Join(parts[i+1:], "")
			tries--
			if still(less) {
				parts = append(parts[:i:i], parts[i+1:]...)
				continue
			}
			i++
		}
		text = strings.Join(parts, "")
	}
	return text
}

func pieces(s string, n int) (out []string) {
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}
