package wire

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

const handshake = "GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

const accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

// upgraded makes the backend change protocols, say first along with the 101, and go on with speak.
func upgraded(first string, speak func(c net.Conn, in *bufio.Reader)) Speak {
	return func(m *Message, c net.Conn, in *bufio.Reader) bool {
		m.Whole = true
		_, _ = io.WriteString(c, accepted+first)
		speak(c, in)
		return false
	}
}

// echo gives each frame back, answers pings, and ends with the close frame that it got.
func echo(c net.Conn, in *bufio.Reader) {
	for {
		f, err := readFrame(in)
		if err != nil {
			return
		}
		if f.code == opPing {
			f.code = opPong
		}
		if _, err := c.Write(f.bytes(false)); err != nil || f.code == opClose {
			return
		}
	}
}

// inEachWay runs a test with a lane of each way.
func inEachWay(t *testing.T, test func(t *testing.T, l *Lane)) {
	t.Helper()
	inWays(t, ways, test)
}

// overTLSToo is inEachWay, and once more where clients come over TLS.
func overTLSToo(t *testing.T, test func(t *testing.T, l *Lane)) {
	t.Helper()
	inWays(t, append(ways[:len(ways):len(ways)], way{"file, TLS", func() (*Lane, error) { return tlsLane(t.TempDir()) }}), test)
}

func inWays(t *testing.T, ways []way, test func(t *testing.T, l *Lane)) {
	t.Helper()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			l, err := w.lane()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { // behind the test's own, which close its clients
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, l)
		})
	}
}

// open makes a WebSocket, with early bytes in the same write as the request.
func open(t *testing.T, l *Lane, early []byte) *Client {
	t.Helper()
	c, err := l.Dial(patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(append([]byte(handshake), early...)); err != nil {
		t.Fatal(err)
	}
	m, err := ReadAnswer(c.In, false)
	if key, _ := m.Get("Sec-WebSocket-Accept"); err != nil || m.Status() != 101 || key != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("%+v, %v", m, err)
	}
	return c
}

func (c *Client) send(t *testing.T, frames ...frame) {
	t.Helper()
	for _, f := range frames {
		if _, err := c.Write(f.bytes(true)); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *Client) want(t *testing.T, want ...frame) {
	t.Helper()
	for _, w := range want {
		f, err := readFrame(c.In)
		if err != nil || f.fin != w.fin || f.code != w.code || !bytes.Equal(f.data, w.data) {
			t.Fatalf("got a frame %v %d of %d bytes, %v; want %v %d of %d", f.fin, f.code, len(f.data), err, w.fin, w.code, len(w.data))
		}
	}
}

// TestWebSocketFrames: fragments keep their borders, control frames come between them in order, and a close code goes both ways.
func TestWebSocketFrames(t *testing.T) {
	overTLSToo(t, func(t *testing.T, l *Lane) {
		l.Backend.Say(upgraded("", echo))
		c := open(t, l, nil)
		all := []frame{
			{true, opText, []byte("hello")}, {true, opText, nil}, {true, opBytes, bytes.Repeat([]byte{0xff}, 125)}, {true, opBytes, make([]byte, 126)}, {true, opBytes, make([]byte, 70_000)},
			{false, opText, []byte("a")}, {false, opMore, []byte("b")}, {true, opPing, []byte("between")}, {false, opMore, nil}, {true, opMore, []byte("c")},
		}
		want := append([]frame(nil), all...)
		want[7].code = opPong
		go func() {
			for _, f := range all {
				_, _ = c.Write(f.bytes(true))
			}
		}()
		c.want(t, want...)
		end := frame{true, opClose, []byte("\x03\xe8bye")} // 1000
		c.send(t, end)
		c.want(t, end)
		if rest, err := c.Ended(); err != nil || len(rest) > 0 {
			t.Errorf("behind the close frame: %q, %v", rest, err)
		}
	})
}

// TestWebSocketCloseCodes: the backend's codes arrive, each before the end of the connection.
func TestWebSocketCloseCodes(t *testing.T) {
	overTLSToo(t, func(t *testing.T, l *Lane) {
		for _, code := range []uint16{1000, 1001, 1008, 1009, 1011, 3000, 4999} {
			end := frame{true, opClose, append(binary.BigEndian.AppendUint16(nil, code), strings.Repeat("r", 123)...)}
			l.Backend.Say(upgraded(string(end.bytes(false)), func(c net.Conn, in *bufio.Reader) { _, _ = readFrame(in) }))
			c := open(t, l, nil)
			c.want(t, end)
			c.send(t, end)
			if rest, err := c.Ended(); err != nil || len(rest) > 0 {
				t.Errorf("%d: behind the close frame: %q, %v", code, rest, err)
			}
		}
	})
}

// TestWebSocketLargeMessages: 16 MB there and back, in one frame and in many; less of it where the race detector looks at each byte.
func TestWebSocketLargeMessages(t *testing.T) {
	overTLSToo(t, func(t *testing.T, l *Lane) {
		l.Backend.Say(upgraded("", echo))
		c := open(t, l, nil)
		data := make([]byte, largeMessage)
		for i := range data {
			data[i] = byte(i * i >> 7)
		}
		sum := sha256.Sum256(data)
		whole := frame{true, opBytes, data}
		go func() { _, _ = c.Write(whole.bytes(true)) }()
		f, err := readFrame(c.In)
		if err != nil || sha256.Sum256(f.data) != sum {
			t.Fatalf("%d bytes, %v", len(f.data), err)
		}
		go func() {
			for i := 0; i < len(data); i += 64 << 10 {
				f := frame{i+64<<10 >= len(data), opMore, data[i:min(i+64<<10, len(data))]}
				if i == 0 {
					f.code = opBytes
				}
				_, _ = c.Write(f.bytes(true))
			}
		}()
		var got []byte
		for fin := false; !fin; {
			f, err := readFrame(c.In)
			if err != nil {
				t.Fatal(err)
			}
			got, fin = append(got, f.data...), f.fin
		}
		if sha256.Sum256(got) != sum {
			t.Errorf("%d bytes came back changed", len(got))
		}
	})
}

// TestWebSocketEarlyBytes: frames in the same packet as the request, or as the 101, are not lost.
func TestWebSocketEarlyBytes(t *testing.T) {
	overTLSToo(t, func(t *testing.T, l *Lane) {
		hello := frame{true, opText, []byte("from the backend")}
		l.Backend.Say(upgraded(string(hello.bytes(false)), echo))
		mine := frame{true, opText, bytes.Repeat([]byte("from the client"), 400)}
		c := open(t, l, mine.bytes(true))
		c.want(t, hello, mine)
	})
}

// TestTunnelHalfClose: each side may end while the other goes on.
func TestTunnelHalfClose(t *testing.T) {
	overTLSToo(t, func(t *testing.T, l *Lane) {
		l.Backend.Say(upgraded("", func(c net.Conn, in *bufio.Reader) {
			all, _ := io.ReadAll(in)
			_, _ = fmt.Fprintf(c, "%d bytes", len(all))
		}))
		c := open(t, l, nil)
		_, _ = c.Write(make([]byte, 1000))
		_ = c.CloseWrite()
		if got, err := c.Ended(); err != nil || string(got) != "1000 bytes" {
			t.Errorf("%q, %v", got, err)
		}
		got := make(chan int, 1)
		l.Backend.Say(upgraded("", func(c net.Conn, in *bufio.Reader) {
			_, _ = io.WriteString(c, "end")
			_ = c.(*net.TCPConn).CloseWrite()
			all, _ := io.ReadAll(in)
			got <- len(all)
		}))
		c = open(t, l, nil)
		if end, err := c.Ended(); err != nil || string(end) != "end" {
			t.Errorf("%q, %v", end, err)
		}
		_, _ = c.Write(make([]byte, 2000))
		_ = c.CloseWrite()
		if n := <-got; n != 2000 {
			t.Errorf("the backend got %d bytes behind its own end, want 2000", n)
		}
	})
}

// TestTunnelEnds: when one side is gone the other learns it at once, and nothing stays behind.
func TestTunnelEnds(t *testing.T) {
	overTLSToo(t, func(t *testing.T, l *Lane) {
		over := make(chan error, 1)
		l.Backend.Say(upgraded("", func(c net.Conn, in *bufio.Reader) {
			_, err := in.ReadByte()
			over <- err
		}))
		c := open(t, l, nil)
		_ = c.SetLinger(0)
		_ = c.Close()
		if err := <-over; err == nil {
			t.Error("a byte from nowhere")
		}
		l.Backend.Say(upgraded("", func(c net.Conn, _ *bufio.Reader) { _ = c.(*net.TCPConn).SetLinger(0) }))
		c = open(t, l, nil)
		_, err := c.In.ReadByte()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the client learns: %v", err)
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	})
}
