package simulate

import (
	"strconv"

	"github.com/upstrand/upstrand/proxy/forward"
)

// server is a virtual server.
type server struct {
	name string // as answers and records call it
	does behaviour

	fields []forward.Field // of an answer, made when it is first asked for; never changed
	size   int64           // of its head on the wire
}

// set changes what the server does from now on.
func (s *server) set(b behaviour) { s.does, s.fields = b, nil }

// head is the fields of an answer as the server gives them now.
func (s *server) head() []forward.Field {
	if s.fields != nil {
		return s.fields
	}
	s.fields = append(s.fields, field("X-Backend", s.name))
	if s.does.field != "" {
		s.fields = append(s.fields, field(s.does.field, s.does.value))
	}
	switch s.does.status {
	case 204:
	case 304:
		s.fields = append(s.fields, field("Content-Length", "0"))
	default:
		s.fields = append(s.fields, field("Content-Length", strconv.Itoa(len(s.name))))
	}
	if s.does.kind != keeps && s.does.kind != stales {
		s.fields = append(s.fields, field("Connection", "close"))
	}
	s.size = headSize(s.fields)
	return s.fields
}

// headSize is the bytes of a head on the wire.
func headSize(fields []forward.Field) int64 {
	n := len("HTTP/1.1 200 X\r\n") + len("\r\n")
	for _, f := range fields {
		n += len(f.Name) + len(f.Value) + len(": \r\n")
	}
	return int64(n)
}

func field(name, value string) forward.Field {
	return forward.Field{Name: []byte(name), Value: []byte(value)}
}
