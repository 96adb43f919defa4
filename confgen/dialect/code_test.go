package dialect

import (
	"strings"
	"testing"
)

func TestBlankCode(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":              {"server { a b; }", "server { a b; }"},
		"braces":               {"a_by_lua_block { if x then { y } end }; c", "a_by_lua_block {" + strings.Repeat(" ", 21) + "}; c"},
		"strings":              {`a_by_lua_block { "}" '}\'}' [[ } ]] } d`, "a_by_lua_block {" + strings.Repeat(" ", 20) + "} d"},
		"comments":             {"a_by_lua_block { -- don't }\n --[[ }\n]] }\nd", "a_by_lua_block {" + strings.Repeat(" ", 11) + "\n       \n   }\nd"},
		"two, and an argument": {"set_by_lua_block $x { } a_by_lua_block {{}}", "set_by_lua_block $x { } a_by_lua_block {  }"},
		"in a comment":         {"# a_by_lua_block { \nserver { }", "# a_by_lua_block { \nserver { }"},
		"no end":               {"a_by_lua_block { {\n }", "a_by_lua_block {  \n  "},
		"a quote alone":        {"a_by_lua_block { x'\n }", "a_by_lua_block {   \n }"},
		"a word":               {"server_name content_by_lua_block;", "server_name content_by_lua_block;"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(blankCode([]byte(tc.text))); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
