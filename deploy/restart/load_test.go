//go:build linux

package restart

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pieces of a slow download, and how long each takes.
const (
	pieces    = 12
	pieceTime = 100 * time.Millisecond
	pieceSize = 32 << 10
)

// backend answers GET / with who it is, POST / with the sum of the body, /download slowly, and /ws with an echo.
func backend(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	mux.HandleFunc("POST /{$}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%x", sha256.Sum256(body))
	})
	mux.HandleFunc("GET /download", func(w http.ResponseWriter, r *http.Request) {
		for range pieces {
			if _, err := w.Write(make([]byte, pieceSize)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pieceTime) // what a slow backend does
		}
	})
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = echo(c, rw.Reader)
	})
	s := httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// echo gives back what comes in frames of a WebSocket until a close frame, which it answers.
func echo(c net.Conn, r *bufio.Reader) error {
	for {
		op, payload, err := readFrame(r)
		if err != nil {
			return err
		}
		if _, err := c.Write(frame(op, payload, false)); err != nil || op == opClose {
			return err
		}
	}
}

const (
	opText  = 1
	opClose = 8
)

func readFrame(r *bufio.Reader) (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1] & 0x7f)
	if n == 126 {
		var more [2]byte
		if _, err := io.ReadFull(r, more[:]); err != nil {
			return 0, nil, err
		}
		n = uint64(binary.BigEndian.Uint16(more[:]))
	}
	var mask [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(r, mask[:]); err != nil {
			return 0, nil, err
		}
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return head[0] & 0x0f, payload, err
}

// frame is one of less than 64 KB. The mask is a plain one.
func frame(op byte, payload []byte, masked bool) []byte {
	out := []byte{0x80 | op, 0}
	if len(payload) < 126 {
		out[1] = byte(len(payload))
	} else {
		out[1] = 126
		out = binary.BigEndian.AppendUint16(out, uint16(len(payload)))
	}
	if !masked {
		return append(out, payload...)
	}
	out[1] |= 0x80
	mask := [4]byte{1, 2, 3, 4}
	out = append(out, mask[:]...)
	for i, b := range payload {
		out = append(out, b^mask[i%4])
	}
	return out
}

// load is clients that ask all the time. Addrs are asked in turn when one refuses.
type load struct {
	addrs  []string
	tls    bool // over TLS, in HTTP/2 where the proxy lets it
	asked  atomic.Int64
	mu     sync.Mutex
	failed []string
	stop   context.CancelFunc
	going  sync.WaitGroup
}

func newLoad(addrs ...string) *load { return &load{addrs: addrs} }

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, time.Now().UTC().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// begin lets n clients of each kind ask: GET and POST over connections that are kept, and GET over new ones.
func (l *load) begin(n int) {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	for range n {
		l.going.Go(func() { l.client(ctx, "GET", false) })
		l.going.Go(func() { l.client(ctx, "POST", false) })
		l.going.Go(func() { l.client(ctx, "GET", true) })
	}
}

// end stops asking and tells what failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.going.Wait()
	if len(l.failed) > 0 {
		t.Errorf("%d of %d requests failed, such as %s", len(l.failed), l.asked.Load(), strings.Join(l.failed[:min(len(l.failed), 5)], "; "))
	}
	t.Logf("%d requests", l.asked.Load())
}

// await waits until so many more have been made.
func (l *load) await(t *testing.T, more int64) {
	t.Helper()
	want := l.asked.Load() + more
	for end := time.Now().Add(20 * time.Second); l.asked.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the clients are stuck")
		}
	}
}

func (l *load) client(ctx context.Context, method string, anew bool) {
	tr := &http.Transport{DisableKeepAlives: anew, MaxIdleConnsPerHost: 1, ForceAttemptHTTP2: l.tls, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr, Timeout: 10 * time.Second}
	body := bytes.Repeat([]byte("0123456789abcdef"), 256)
	want := "hello"
	if method == "POST" {
		want = fmt.Sprintf("%x", sha256.Sum256(body))
	}
	for i := 0; ctx.Err() == nil; i++ {
		got, err := l.ask(c, method, body)
		l.asked.Add(1)
		if err != nil || got != want {
			l.fail("%s %v: %q, %v", method, anew, got, err)
		}
		time.Sleep(time.Millisecond) // so that the machine is not full
	}
}

// ask tries the next address when there is no connection to one: nothing was sent there.
func (l *load) ask(c *http.Client, method string, body []byte) (text string, err error) {
	for _, addr := range l.addrs {
		var r *http.Request
		r, err = http.NewRequest(method, l.url(addr), bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		if method == "GET" {
			r.Body, r.GetBody, r.ContentLength = nil, nil, 0
		}
		var res *http.Response
		if res, err = c.Do(r); err != nil {
			if op := new(net.OpError); errors.As(err, &op) && op.Op == "dial" {
				continue
			}
			return "", err
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		switch {
		case res.StatusCode != 200:
			err = fmt.Errorf("status %d, %v", res.StatusCode, err)
		case l.tls && res.ProtoMajor != 2:
			err = fmt.Errorf("%s in place of HTTP/2", res.Proto)
		}
		return string(got), err
	}
	return "", err
}

func (l *load) url(addr string) string {
	if l.tls {
		return "https://" + addr + "/"
	}
	return "http://" + addr + "/"
}

// download is one that is under way: its result comes at its end.
func download(addr string) <-chan error {
	got := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		res, err := http.Get("http://" + addr + "/download")
		close(begun)
		if err != nil {
			got <- err
			return
		}
		defer res.Body.Close()
		n, err := io.Copy(io.Discard, res.Body)
		if err == nil && n != pieces*pieceSize {
			err = fmt.Errorf("%d bytes", n)
		}
		got <- err
	}()
	<-begun
	return got
}

// socket is a WebSocket through the proxy.
type socket struct {
	net.Conn
	r *bufio.Reader
}

func dialSocket(t *testing.T, addr string) *socket {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
	s := &socket{c, bufio.NewReader(c)}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	res, err := http.ReadResponse(s.r, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatalf("%v, %v", res, err)
	}
	return s
}

// echoes sends a text and expects it back.
func (s *socket) echoes(text string) error {
	if _, err := s.Write(frame(opText, []byte(text), true)); err != nil {
		return err
	}
	op, got, err := readFrame(s.r)
	if err == nil && (op != opText || string(got) != text) {
		err = fmt.Errorf("frame %d %q", op, got)
	}
	return err
}

// farewell waits for the close frame and gives its code.
func (s *socket) farewell() (int, error) {
	op, payload, err := readFrame(s.r)
	if err != nil {
		return 0, err
	}
	if op != opClose || len(payload) < 2 {
		return 0, fmt.Errorf("frame %d %q", op, payload)
	}
	return int(binary.BigEndian.Uint16(payload)), nil
}
