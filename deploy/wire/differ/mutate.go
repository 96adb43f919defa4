package main

import "strings"

// bytes that proxies stumble over.
var odd = []string{"\r", "\n", "\r\n", "\x00", " ", "\t", "\x0b", "\x0c", "\x7f", "\x80", "\xff", ":", ",", ";", "/", "\\", "#", "?", "%", "%00", "%2f", "\"", "0", "1", "a", "\r\n\r\n", "HTTP/1.1", "chunked"}

// mutate changes a text in one place.
func (g *generator) mutate(text string) string {
	if text == "" {
		return g.pick(odd...)
	}
	at := g.IntN(len(text))
	switch g.IntN(8) {
	case 0: // a byte less
		return text[:at] + text[at+1:]
	case 1: // something odd more
		return text[:at] + g.pick(odd...) + text[at:]
	case 2: // something odd instead
		return text[:at] + g.pick(odd...) + text[at+1:]
	case 3: // a line twice
		lines := strings.SplitAfter(text, "\n")
		i := g.IntN(len(lines))
		return strings.Join(lines[:i+1], "") + strings.Join(lines[i:], "")
	case 4: // a line less
		lines := strings.SplitAfter(text, "\n")
		i := g.IntN(len(lines))
		return strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "")
	case 5: // two lines in the other order
		lines := strings.SplitAfter(text, "\n")
		i, j := g.IntN(len(lines)), g.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		return strings.Join(lines, "")
	case 6: // letters in the other case
		end := min(len(text), at+1+g.IntN(8))
		return text[:at] + swapped(text[at:end]) + text[end:]
	}
	return text[:at] // the end too early
}

func swapped(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b[i] = c ^ ' '
		}
	}
	return string(b)
}
