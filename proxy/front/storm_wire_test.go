package front

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
)

// answers reads one answer after another.
type answers struct{ r *bufio.Reader }

func newAnswers(c net.Conn) answers { return answers{bufio.NewReader(c)} }

func (a answers) next() (string, error) {
	answer, err := http.ReadResponse(a.r, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	return string(body), err
}

// recordsOnly is a client's socket that must bring records of TLS and nothing else.
type recordsOnly struct {
	net.Conn
	seen recordCount
}

// Read is net.Conn's.
func (r *recordsOnly) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	for _, b := range p[:n] {
		r.seen.pass([]byte{b})
		h := r.seen.head
		if r.seen.have == 3 && (h[0] < 20 || h[0] > 23 || h[1] != 3) {
			return 0, fmt.Errorf("no record of TLS: % x", h[:3])
		}
	}
	return n, err
}

// CloseWrite ends the direction to the server.
func (r *recordsOnly) CloseWrite() error { return closeWrite(r.Conn) }
