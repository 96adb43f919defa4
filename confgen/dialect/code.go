package dialect

import (
	"bytes"
	"regexp"
)

// codeBlock is the beginning of a block of Lua, which follows no grammar of nginx.
var codeBlock = regexp.MustCompile(`[a-z_]+_by_lua_block\b[^{};\n]*\{`)

// blankCode replaces what stands in blocks of code by blanks, so that the rest of the file can be read: the blocks
// themselves are refused. Lines stay where they are.
func blankCode(text []byte) []byte {
	if !bytes.Contains(text, []byte("_by_lua_block")) {
		return text
	}
	out := bytes.Clone(text)
	for at := 0; ; {
		found := codeBlock.FindIndex(text[at:])
		if found == nil {
			return out
		}
		start, begin := at+found[0], at+found[1]
		at = begin
		if inComment(text, start) {
			continue
		}
		at += endOfCode(text[begin:])
		for i := begin; i < at; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
}

// endOfCode is where the closing brace of a block of Lua stands, or the end. Braces in strings and comments don't count.
func endOfCode(text []byte) int {
	depth := 1
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch c := text[i]; {
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		case bytes.HasPrefix(rest, []byte("--[[")), bytes.HasPrefix(rest, []byte("[[")):
			i += past(rest, "]]")
		case bytes.HasPrefix(rest, []byte("--")):
			i += past(rest, "\n")
		case c == '"' || c == '\'':
			i += endOfString(rest)
		}
	}
	return len(text)
}

// past is the index of the last byte of end in text, or of text itself.
func past(text []byte, end string) int {
	if i := bytes.Index(text, []byte(end)); i >= 0 {
		return i + len(end) - 1
	}
	return len(text)
}

// endOfString is the index of the quote that ends the string which text begins with; 0 when its line ends before.
func endOfString(text []byte) int {
	for i := 1; i < len(text) && text[i] != '\n'; i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i
		}
	}
	return 0
}
