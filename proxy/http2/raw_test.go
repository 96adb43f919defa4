package http2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// raw is a client that says what it likes, frame by frame.
type raw struct {
	t    *testing.T
	conn net.Conn
	fr   *http2.Framer
	buf  bytes.Buffer
	enc  *hpack.Encoder
}

// dialRaw connects, says the preface and the settings, and has those of the server acknowledged.
func dialRaw(t *testing.T, addr string, settings ...http2.Setting) *raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	r := &raw{t: t, conn: c, fr: http2.NewFramer(c, c)}
	r.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.enc = hpack.NewEncoder(&r.buf)
	_, _ = io.WriteString(c, http2.ClientPreface)
	if err := errors.Join(r.fr.WriteSettings(settings...), r.fr.WriteSettingsAck()); err != nil {
		t.Fatal(err)
	}
	return r
}

// block is a head as bytes: names and values in turn.
func (r *raw) block(fields ...string) []byte {
	r.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = r.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(r.buf.Bytes())
}

// get is the head of a plain request, with more fields.
func get(more ...string) []string {
	return append([]string{":method", "GET", ":scheme", "http", ":authority", "a.example", ":path", "/"}, more...)
}

func post(more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":authority", "a.example", ":path", "/"}, more...)
}

// headers sends a whole head.
func (r *raw) headers(stream uint32, end bool, fields ...string) error {
	return r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: r.block(fields...), EndHeaders: true, EndStream: end})
}

// next gives the next frame that is no SETTINGS, WINDOW_UPDATE or PING, as text; or the error that reading ended with.
func (r *raw) next() string {
	for {
		f, err := r.fr.ReadFrame()
		if err != nil {
			var slow net.Error
			if errors.As(err, &slow) && slow.Timeout() {
				return "nothing"
			}
			return "closed"
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			return fmt.Sprintf("HEADERS %d %s end=%v", f.StreamID, f.PseudoValue("status"), f.StreamEnded())
		case *http2.DataFrame:
			return fmt.Sprintf("DATA %d %d end=%v", f.StreamID, len(f.Data()), f.StreamEnded())
		case *http2.RSTStreamFrame:
			return fmt.Sprintf("RST %d %v", f.StreamID, f.ErrCode)
		case *http2.GoAwayFrame:
			return fmt.Sprintf("GOAWAY %d %v", f.LastStreamID, f.ErrCode)
		}
	}
}

// until reads on to a frame with that text, and fails at the end.
func (r *raw) until(want string) {
	r.t.Helper()
	var seen []string
	for {
		got := r.next()
		if got == want {
			return
		}
		if seen = append(seen, got); got == "closed" || got == "nothing" {
			r.t.Fatalf("no %q but %q", want, seen)
		}
	}
}

// ends reads until the connection ends, and tells whether it does.
func (r *raw) ends() bool {
	for {
		switch r.next() {
		case "closed":
			return true
		case "nothing":
			return false
		}
	}
}
