package main

import (
	"regexp"
	"strings"

	"github.com/upstrand/upstrand/deploy/wire"
)

var (
	tabbed  = regexp.MustCompile(`(?i)\n(host|transfer-encoding|content-length)[ \t]*:[^\r\n]*\t`)
	lists   = regexp.MustCompile(`(?is)\n(if-match|if-none-match):.*\n(if-match|if-none-match):`)
	oddHost = regexp.MustCompile(`(?i) https?://[^/? \r\n]*[!$&'()*+,;=_~][^/? \r\n]*[/? ]`)
)

// stricter tells why nginx refuses what RFC 9110 and 9112 allow; empty: there is no such reason.
func stricter(text string, m *wire.Message, nginx outcome) string {
	last := 0
	if n := len(nginx.answers); n > 0 {
		last = nginx.answers[n-1]
	}
	switch {
	case strings.Trim(m.Method(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "":
		return "a method is any token; nginx takes letters in capitals, - and _"
	case m.Method() == "OPTIONS" && m.Target() == "*":
		return "RFC 9112 3.2.4: it asks about the server as a whole; nginx does not serve it"
	case last == 405:
		return "nginx closes after a method that it does not serve, and need not: the request was read to its end"
	case tabbed.MatchString(text):
		return "white space around a value may be a tab; nginx takes that for a part of the value"
	case lists.MatchString(text):
		return "If-Match is a list, which may come in several lines; nginx takes one"
	case oddHost.MatchString(text):
		return "a host is of more characters than letters, digits, - and ., which is all that nginx takes in an absolute form"
	}
	return ""
}

// hop is the fields that are each hop's own, or that the configurations write.
var hop = map[string]bool{
	"host": true, "connection": true, "keep-alive": true, "proxy-connection": true, "transfer-encoding": true, "content-length": true, "te": true, "trailer": true,
	"upgrade": true, "expect": true, "http2-settings": true, "forwarded": true, "x-real-ip": true,
}

// passed is false for what one of the proxies keeps back by itself: nginx and a file leave out names of other than letters, digits
// and "-".
func passed(name string) bool {
	return !hop[name] && !strings.HasPrefix(name, "x-forwarded-") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// dropped: what Connection names is kept back by us, and passed on by nginx with the Connection left out, so that only the client's
// own words tell. Those that the generator makes Connection name are these.
func dropped(name string, _ *wire.Message) bool { return name == "x-a" }
