package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAnswersComeAsTheyAreSent: the head before the body, and each piece when it is there, however the body is framed. A head that says
// the length may wait for the first piece, as it does in nginx: no such stream is endless.
func TestAnswersComeAsTheyAreSent(t *testing.T) {
	for _, tc := range []struct{ name, head, form, end string }{
		{"chunks", "Transfer-Encoding: chunked\r\n", "6\r\n%s\r\n", "0\r\n\r\n"},
		{"a length", "Content-Length: 18\r\n", "%s", ""},
		{"until the end", "Connection: close\r\n", "%s", ""},
		{"events", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n", "6\r\n%s\r\n", "0\r\n\r\n"},
	} {
		inEachWay(t, func(t *testing.T, l *Lane) {
			next := make(chan string)
			var once sync.Once
			end := func() { once.Do(func() { close(next) }) }
			defer end()
			l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
				_ = m.ReadRequestBody(in)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+tc.head+"\r\n")
				for s := range next {
					_, _ = fmt.Fprintf(c, tc.form, s)
				}
				_, _ = io.WriteString(c, tc.end)
				return tc.end != ""
			})
			c, err := Dial(l.Addr, patience)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			send := func(s string) {
				select {
				case next <- s:
				case <-time.After(patience):
					t.Fatal("the backend does not get on")
				}
			}
			counted := strings.HasPrefix(tc.head, "Content-Length")
			if counted {
				send("first ")
			}
			m := &Message{}
			if err := m.head(c.In); err != nil {
				t.Fatalf("%s: the head: %v", tc.name, err)
			}
			coding, _ := m.Get("Transfer-Encoding")
			for i, s := range []string{"first ", "second", "third "} {
				if i > 0 || !counted {
					send(s)
				}
				if coding == "chunked" {
					if size, err := m.line(c.In); err != nil || size != "6" {
						t.Fatalf("%s: a piece is not passed on alone: %q, %v", tc.name, size, err)
					}
				}
				got := make([]byte, len(s))
				if _, err := io.ReadFull(c.In, got); err != nil || string(got) != s {
					t.Fatalf("%s: %q, %v", tc.name, got, err)
				}
				if coding == "chunked" {
					_, _ = m.line(c.In)
				}
			}
			end()
		})
	}
}

// TestRequestsComeAsTheyAreSent: a body that is not to be taken in first arrives piece by piece.
func TestRequestsComeAsTheyAreSent(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		got := make(chan string, 3)
		l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
			for range 3 {
				size, err := m.line(in)
				if err != nil {
					return false
				}
				piece, _ := m.line(in)
				got <- size + " " + piece
			}
			_, _ = m.line(in)
			_, _ = m.line(in)
			m.Whole = true
			_, err := io.WriteString(c, OK)
			return err == nil
		})
		c, err := Dial(l.Addr, patience)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "POST /stream HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, s := range []string{"one", "two", "three"} {
			_, _ = io.WriteString(c, chunked(s, 100))
			select {
			case piece := <-got:
				if piece != fmt.Sprintf("%x %s", len(s), s) {
					t.Fatalf("the backend got %q, want %q", piece, s)
				}
			case <-time.After(patience):
				t.Fatalf("%q does not come before what follows it", s)
			}
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
		if m, err := ReadAnswer(c.In, false); err != nil || m.Status() != 200 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// TestAClientThatGoes: the backend learns it, before an answer and within one.
func TestAClientThatGoes(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		for _, began := range []bool{false, true} {
			over := make(chan error, 1)
			arrived := make(chan struct{})
			l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
				_ = m.ReadRequestBody(in)
				if began {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
				}
				close(arrived)
				_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
				_, err := in.ReadByte()
				over <- err
				return false
			})
			c, err := Dial(l.Addr, patience)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			<-arrived
			if began {
				if _, err := io.CopyN(io.Discard, c.In, 30); err != nil { // something of it
					t.Error(err)
				}
			} else {
				_ = c.SetLinger(0)
			}
			_ = c.Close()
			if err := <-over; err == nil || strings.Contains(err.Error(), "timeout") {
				t.Errorf("begun %v: the backend waits for a client that is gone: %v", began, err)
			}
		}
	})
}

// TestInformsThenNothing: heads before the final one and then garbage, or the end, are a 502 and no wait.
func TestInformsThenNothing(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		for _, rest := range []string{"", "garbage\r\n\r\n", "HTTP/1.1 1", "\x00"} {
			l.Backend.Say(func(m *Message, c net.Conn, in *bufio.Reader) bool {
				_ = m.ReadRequestBody(in)
				_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"+rest)
				return false
			})
			if answer, _ := exchange(t, l, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); answer.Status() != 502 {
				t.Errorf("%q: %+v", rest, answer)
			}
		}
	})
}

// TestAnotherProtocolThanAsked: a backend that changes to something else is not followed.
func TestAnotherProtocolThanAsked(t *testing.T) {
	inEachWay(t, func(t *testing.T, l *Lane) {
		l.Backend.Say(Answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"))
		if answer, _ := exchange(t, l, strings.Replace(handshake, "websocket", "asked", 1)); answer.Status() != 502 {
			t.Errorf("%+v", answer)
		}
	})
}
