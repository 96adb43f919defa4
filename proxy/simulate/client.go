package simulate

import (
	"errors"
	"io"
	"strings"

	"github.com/upstrand/upstrand/proxy/forward"
)

// recorder is a client that keeps what it is told.
type recorder struct {
	status  int
	fields  []forward.Field // kept when keep is set
	body    []byte          // likewise
	length  int64
	keep    bool
	ended   bool
	aborted bool
}

var errNoTunnel = errors.New("there are no tunnels in a virtual world")

func (c *recorder) Inform(int, []forward.Field) error { return nil }

func (c *recorder) Head(status int, fields []forward.Field, _ int64) error {
	c.status = status
	if !c.keep {
		return nil
	}
	c.fields = make([]forward.Field, len(fields))
	for i, f := range fields {
		c.fields[i] = forward.Field{Name: []byte(string(f.Name)), Value: []byte(string(f.Value))}
	}
	return nil
}

func (c *recorder) Write(p []byte) error {
	c.length += int64(len(p))
	if c.keep {
		c.body = append(c.body, p...)
	}
	return nil
}

func (c *recorder) End([]forward.Field) error { c.ended = true; return nil }

func (c *recorder) Abort() { c.aborted = true }

func (c *recorder) Tunnel() (io.ReadWriteCloser, error) { return nil, errNoTunnel }

// header is the answer's fields by name in lower case.
func (c *recorder) header() map[string][]string {
	out := map[string][]string{}
	for _, f := range c.fields {
		name := strings.ToLower(string(f.Name))
		out[name] = append(out[name], string(f.Value))
	}
	return out
}
