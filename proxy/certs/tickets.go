package certs

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"time"
)

// wrap makes a ticket of a session. It says what the session was made under, and when: a client that showed no certificate
// to one server must not come in to another one by it, and one whose authority was taken out must show its certificate again.
func (id *identity) wrap(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
	ss.Extra = append(ss.Extra, binary.BigEndian.AppendUint64(bytes.Clone(id.tag[:]), uint64(time.Now().UnixMilli())))
	return id.tickets.EncryptTicket(cs, ss)
}

// unwrap reads a ticket. What is none of ours, too old or of other settings is no session: the handshake is a whole one.
func (id *identity) unwrap(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
	ss, err := id.tickets.DecryptTicket(ticket, cs)
	if err != nil || ss == nil {
		return nil, nil
	}
	for _, extra := range ss.Extra {
		if len(extra) != len(id.tag)+8 || !bytes.HasPrefix(extra, id.tag[:]) {
			continue
		}
		made := time.UnixMilli(int64(binary.BigEndian.Uint64(extra[len(id.tag):])))
		if age := time.Since(made); age >= -time.Minute && age < id.life() { // clocks of several proxies
			return ss, nil
		}
	}
	return nil, nil
}
