package front

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// halting is a socket that keeps what is written to it until let go.
type halting struct {
	net.Conn
	holds bool
	kept  []byte
}

// Write is net.Conn's.
func (h *halting) Write(b []byte) (int, error) {
	if h.holds {
		h.kept = append(h.kept, b...)
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// TestPartsOfRecords: a request is served however the records of TLS come: with half of the alert that says goodbye, with half
// of another request, or byte by byte.
func TestPartsOfRecords(t *testing.T) {
	_, addr := serve(t, Settings{TLS: true}, plain, withTLS(t))
	for name, tc := range map[string]struct {
		version uint16
		more    string // behind the first request
		bye     bool
		behind  int // bytes of the kept ones that come later; 0: each comes by itself
	}{
		"half an alert": {tls.VersionTLS12, "", true, 8}, "half an alert, TLS 1.3": {tls.VersionTLS13, "", true, 8},
		"half a request": {tls.VersionTLS13, get, false, 30}, "two at once": {tls.VersionTLS12, get, false, 1}, "byte by byte": {tls.VersionTLS12, get, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			raw := &halting{Conn: dial(t, addr)}
			c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, MaxVersion: tc.version})
			if err := c.Handshake(); err != nil {
				t.Fatal(err)
			}
			say(t, c, get)
			hear(t, c, "GET /\n")
			time.Sleep(5 * time.Millisecond) // so that it waits
			raw.holds = true
			say(t, c, get)
			if tc.more != "" {
				say(t, c, tc.more)
			}
			if tc.bye {
				_ = c.CloseWrite()
				_ = raw.SetWriteDeadline(time.Now().Add(10 * time.Second)) // it set another one
			}
			step := len(raw.kept) - tc.behind
			if tc.behind == 0 {
				step = 1
			}
			heard := false
			for b := raw.kept; len(b) > 0; {
				n := min(step, len(b))
				if _, err := raw.Conn.Write(b[:n]); err != nil {
					t.Fatal(err)
				}
				if b = b[n:]; tc.behind > 0 && !heard {
					hear(t, c, "GET /\n") // the first is answered without the rest
					heard = true
				}
			}
			if tc.more != "" || !heard {
				hear(t, c, "GET /\n")
			}
		})
	}
}
