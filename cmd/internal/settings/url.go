package settings

import (
	"net"
	"strings"
)

// WithScheme completes the host:port that people write for an http:// URL. What is neither is returned as it is.
func WithScheme(text string) string {
	at, path, _ := strings.Cut(text, "/")
	if _, port, err := net.SplitHostPort(at); err != nil || port == "" || strings.Contains(text, "://") {
		return text
	}
	if path != "" {
		path = "/" + path
	}
	return "http://" + at + path
}
