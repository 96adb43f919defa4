package wire

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// job is one exchange of chaos, written into the request's target, so that backend and client know what is to happen.
type job struct {
	id   string
	kind string // how the answer is framed: length, chunks, close, none (204)
	size int    // of its body
	at   int    // after so many bytes of the answer …
	then string // … this happens: go on, close, reset, stall, garbage; more and early happen at the end and the beginning
	post int    // bytes of the request's body; 0: GET
}

func (j job) target() string {
	return fmt.Sprintf("/chaos/%s/%s/%d/%d/%s", j.id, j.kind, j.size, j.at, j.then)
}

func jobOf(target string) (j job, ok bool) {
	w := strings.Split(target, "/")
	if len(w) != 7 || w[1] != "chaos" {
		return j, false
	}
	j.id, j.kind, j.then = w[2], w[3], w[6]
	j.size, _ = strconv.Atoi(w[4])
	j.at, _ = strconv.Atoi(w[5])
	return j, true
}

// text is so many bytes that belong to an id and to nobody else.
func text(id string, size int) []byte {
	sum := sha256.Sum256([]byte(id))
	unit := fmt.Appendf(nil, "%s %x ", id, sum[:8])
	return bytes.Repeat(unit, size/len(unit)+1)[:size]
}

func (j job) request() []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: a\r\nX-Id: %s\r\n", map[bool]string{true: "POST", false: "GET"}[j.post > 0], j.target(), j.id)
	if j.post == 0 {
		return append(b, "\r\n"...)
	}
	body := text(j.id, j.post)
	if j.post%2 == 0 {
		return append(append(b, "Transfer-Encoding: chunked\r\n\r\n"+chunked(string(body), 300)...), "0\r\n\r\n"...)
	}
	return append(fmt.Appendf(b, "Content-Length: %d\r\n\r\n", j.post), body...)
}

func (j job) answer() []byte {
	body := text(j.id, j.size)
	b := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nX-Id: %s\r\n", j.id)
	switch j.kind {
	case "length":
		b = append(fmt.Appendf(b, "Content-Length: %d\r\n\r\n", j.size), body...)
	case "chunks":
		b = append(append(b, "Transfer-Encoding: chunked\r\n\r\n"...), chunked(string(body), 700)...)
		b = append(b, "0\r\n\r\n"...)
	case "close":
		b = append(append(b, "\r\n"...), body...)
	case "none":
		b = fmt.Appendf(nil, "HTTP/1.1 204 No Content\r\nX-Id: %s\r\n\r\n", j.id)
	}
	return b
}

// chaotic is the backend's side of jobs. Wrong counts requests that are not what a client sent.
func chaotic(wrong *atomic.Int64) Speak {
	return func(m *Message, c net.Conn, in *bufio.Reader) bool {
		j, ok := jobOf(m.Target())
		if id, n := m.Get("X-Id"); !ok || n != 1 || id != j.id || m.Faults != nil {
			wrong.Add(1)
			return false
		}
		answer := j.answer()
		if j.then != "early" {
			err := m.ReadRequestBody(in)
			if !bytes.HasPrefix(text(j.id, len(m.Body)), m.Body) || m.Faults != nil {
				wrong.Add(1)
			}
			if err != nil {
				return false
			}
		}
		at := min(j.at, len(answer))
		// What is too much goes in one write with what it follows: what comes later, when the connection may be in use again, nobody can
		// tell from an answer.
		const stray = "HTTP/1.1 200 OK\r\nX-Id: nobody\r\nContent-Length: 5\r\n\r\nwrong"
		switch j.then {
		case "garbage":
			_, err := c.Write(append(answer[:at], "\x00\r\n"+stray...))
			return err == nil
		case "more":
			answer = append(answer, stray...)
			at = len(answer)
		}
		_, _ = c.Write(answer[:at])
		switch j.then {
		case "close":
			return false
		case "reset":
			_ = c.(*net.TCPConn).SetLinger(0)
			return false
		case "stall":
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
			_, _ = io.Copy(io.Discard, in) // until the proxy gives up
			return false
		}
		_, err := c.Write(answer[at:])
		if j.then == "early" && m.ReadRequestBody(in) != nil {
			return false
		}
		return err == nil && j.kind != "close"
	}
}

// check tells what is wrong with an answer; empty: it is what its job may lead to.
func (j job) check(m *Message, err error) string {
	status := m.Status()
	if m.Line == "" || status >= 400 && status != 200 {
		if _, n := m.Get("X-Id"); n > 0 {
			return fmt.Sprintf("an error of ours with an answer's fields: %+v", m)
		}
		return "" // the connection was cut, or it is our own answer
	}
	if j.then == "garbage" || j.then == "more" && j.kind == "close" {
		return "" // what a backend says instead of its answer, or within it, is its answer
	}
	id, n := m.Get("X-Id")
	if err != nil && n == 0 {
		return "" // cut within the head
	}
	if n != 1 || id != j.id {
		return fmt.Sprintf("the answer to another: %q", id)
	}
	want := text(j.id, j.size)
	if j.kind == "none" {
		want = nil
	}
	if !bytes.HasPrefix(want, m.Body) {
		return fmt.Sprintf("wrong bytes: %.80q", m.Body)
	}
	if err == nil && len(m.Body) < len(want) && j.kind != "close" {
		return fmt.Sprintf("taken for whole with %d of %d bytes", len(m.Body), len(want))
	}
	if m.Faults != nil {
		return fmt.Sprintf("%q", m.Faults)
	}
	return ""
}

// descriptors is how many files and sockets the process holds. Pipes are not among them: some are kept for splicing.
func descriptors() (n int) {
	for _, name := range openFiles() {
		if name != "" && !strings.HasPrefix(name, "pipe:") { // the one without name was open for this look alone
			n++
		}
	}
	return n
}

// keptPipes is the most ends of pipes that may be kept.
const keptPipes = 64

func pipes() (n int) {
	for _, name := range openFiles() {
		if strings.HasPrefix(name, "pipe:") {
			n++
		}
	}
	return n
}

// openFiles says what they are.
func openFiles() (names []string) {
	list, _ := os.ReadDir("/proc/self/fd")
	for _, f := range list {
		name, _ := os.Readlink("/proc/self/fd/" + f.Name())
		names = append(names, name)
	}
	return names
}

// chaosTime is how long the random part takes.
func chaosTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("UPSTRAND_WIRE_CHAOS")); err == nil {
		return d
	}
	return time.Second
}

// storm has several clients carry out what next gives, until that gives false.
func storm(t *testing.T, l *Lane, clients int, next func(client int, r *rand.Rand) (job, bool), do func(*testing.T, *Lane, job, *rand.Rand)) {
	var wg sync.WaitGroup
	for k := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(k), 5))
			for {
				j, ok := next(k, r)
				if !ok || t.Failed() {
					return
				}
				do(t, l, j, r)
			}
		})
	}
	wg.Wait()
}

// listOf hands out a list to whoever asks.
func listOf(all []job) func(int, *rand.Rand) (job, bool) {
	var at atomic.Int64
	return func(int, *rand.Rand) (job, bool) {
		i := int(at.Add(1)) - 1
		if i >= len(all) {
			return job{}, false
		}
		return all[i], true
	}
}

// untilThen hands out what make gives for a while.
func untilThen(while time.Duration, give func(r *rand.Rand, number int64) job) func(int, *rand.Rand) (job, bool) {
	end := time.Now().Add(while)
	var number atomic.Int64
	return func(_ int, r *rand.Rand) (job, bool) {
		return give(r, number.Add(1)), time.Now().Before(end)
	}
}
