package main

import (
	"net"
	"os"
	"strings"
)

// onPort is ":port" of an address.
func onPort(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return ":" + port
}

// pinned is the version of a module that a go.mod asks for; empty when it does not.
func pinned(file, module string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) >= 2 && f[0] == module {
			return strings.TrimPrefix(f[1], "v")
		}
	}
	return ""
}
