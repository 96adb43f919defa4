package site

import (
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// appended is a variable that every request has, and whose text has to be made.
func appended(add func(b []byte, r *request) []byte) definition {
	return definition{Append: func(b []byte, r *request) ([]byte, bool) { return add(b, r), true }}
}

// plain is appended for texts that need no escape: numbers, times, addresses.
func plain(add func(b []byte, r *request) []byte) definition {
	d := appended(add)
	d.Clean = true
	return d
}

// maybePlain is plain for a variable that counts as absent when it is empty.
func maybePlain(add func(b []byte, r *request) []byte) definition {
	return definition{Clean: true, Append: func(b []byte, r *request) ([]byte, bool) {
		out := add(b, r)
		return out, len(out) > len(b)
	}}
}

// number is a variable that is one.
func number(of func(r *request) int64) definition {
	return plain(func(b []byte, r *request) []byte { return strconv.AppendInt(b, of(r), 10) })
}

// appendAddress writes an address as $remote_addr does; nothing for one that is not known.
func appendAddress(b []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return b
	}
	return a.Unmap().WithZone("").AppendTo(b)
}

// appendPort writes a port, or nothing: a proxy in front need not say the client's.
func appendPort(b []byte, port uint16) []byte {
	if port == 0 {
		return b
	}
	return strconv.AppendUint(b, uint64(port), 10)
}

// appendSeconds writes milliseconds as seconds with three digits behind the point.
func appendSeconds(b []byte, ms int64) []byte {
	b = strconv.AppendInt(b, ms/1000, 10)
	ms %= 1000
	return append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

// took is the milliseconds since the request began.
func (r *request) took() int64 { return max(r.now()-r.began, 0) / int64(time.Millisecond) }

// stamps are the texts of a second that logs have, shared by all requests in it.
type stamps struct {
	second     int64
	local, iso []byte
}

var present atomic.Pointer[stamps]

// stampsOf is the texts for a moment in Unix nanoseconds.
func stampsOf(now int64) *stamps {
	second := now / int64(time.Second)
	if s := present.Load(); s != nil && s.second == second {
		return s
	}
	t := time.Unix(second, 0)
	s := &stamps{second, t.AppendFormat(nil, "02/Jan/2006:15:04:05 -0700"), t.AppendFormat(nil, "2006-01-02T15:04:05-07:00")}
	present.Store(s)
	return s
}
