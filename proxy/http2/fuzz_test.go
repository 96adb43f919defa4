package http2

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/front"
)

// FuzzSession: whatever comes after the preface, the connection is served to its end, nothing hangs, and no request reaches
// the handler that could not be told from another on the way.
func FuzzSession(f *testing.F) {
	var b, block bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	enc := hpack.NewEncoder(&block)
	for _, h := range [][]string{get(), post("content-length", "3"), get("cookie", "a", "cookie", "b"), get("connection", "x")} {
		b.Reset()
		block.Reset()
		for i := 0; i < len(h); i += 2 {
			_ = enc.WriteField(hpack.HeaderField{Name: h[i], Value: h[i+1]})
		}
		_ = fr.WriteSettings()
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
		_ = fr.WriteData(1, true, []byte("abc"))
		_ = fr.WriteWindowUpdate(0, 100)
		_ = fr.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = fr.WritePing(false, [8]byte{})
		f.Add(bytes.Clone(b.Bytes()))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := NewServer(handler(func(_ context.Context, r *forward.Request, c forward.Client) {
			if r.Invalid == "" && string(r.Method) != "CONNECT" {
				if len(r.Target) == 0 || bytes.ContainsAny(r.Target, " \r\n\x00") || bytes.ContainsAny(r.Authority, " \r\n\x00/") {
					t.Errorf("%q %q %q", r.Method, r.Authority, r.Target)
				}
				for _, f := range r.Fields {
					if len(f.Name) == 0 || bytes.ContainsAny(f.Name, " :\r\n\x00") || bytes.ContainsAny(f.Value, "\r\n\x00") || ofConnection[canonical(f.Name)] {
						t.Errorf("%q: %q", f.Name, f.Value)
					}
				}
			}
			if r.Body != nil {
				_, _ = io.Copy(io.Discard, readerOf{r.Body})
			}
			say(c, 200, "x")
		}), quiet)
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			limits := limitsForTests()
			limits.ClientBody, limits.ClientSend, limits.ClientIdle, limits.ClientHeader = time.Second, time.Second, time.Second, time.Second
			s.ServeConn(ours, front.ConnInfo{Number: 1, Settings: limits})
		}()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		_ = theirs.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(theirs, http2.ClientPreface)
		_, _ = theirs.Write(in)
		_ = theirs.Close()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the connection does not end")
		}
		_ = s.Close()
	})
}
