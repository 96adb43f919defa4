package handover

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// Notify tells systemd how this process stands, such as READY=1 (see sd_notify(3)). Without NOTIFY_SOCKET, which systemd
// sets for units of Type=notify, it does nothing.
func Notify(state ...string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // a leading @ is an abstract one
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(strings.Join(state, "\n"))); err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	return nil
}
