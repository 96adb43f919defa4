package proxy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/upstrand/upstrand/proxy/accesslog"
	"github.com/upstrand/upstrand/proxy/forward"
	"github.com/upstrand/upstrand/proxy/site"
)

// AccessLog is a line of JSON for each request. The zero value writes none.
type AccessLog struct {
	Path    string // file, or /dev/stdout and the like; empty: there is none
	Options accesslog.Options
	// Sample is the part of the requests that get a line, from 0 to 1; 0 means all. What went wrong gets one in any case: a 5xx,
	// no answer, an answer of our own, more than one attempt.
	Sample float64
}

// lineLog writes the lines.
type lineLog struct {
	log    *accesslog.Log
	below  uint64 // a random number below it makes a line
	sample []byte // of a line that stands for others; empty: each stands for itself
}

func newLineLog(files *accesslog.Files, a AccessLog) (*lineLog, error) {
	if a.Path == "" {
		return nil, nil
	}
	if a.Sample < 0 || a.Sample > 1 {
		return nil, fmt.Errorf("access log: sample %v: want 0 to 1", a.Sample)
	}
	log, err := files.Acquire(a.Path, a.Options)
	if err != nil {
		return nil, err
	}
	l := &lineLog{log: log, below: math.MaxUint64}
	if a.Sample > 0 && a.Sample < 1 {
		l.below = uint64(a.Sample * (1 << 63) * 2)
		l.sample = strconv.AppendFloat([]byte(`,"sample":`), a.Sample, 'g', -1, 64)
	}
	return l, nil
}

// close writes out what waits. No line may be written any more.
func (l *lineLog) close(files *accesslog.Files) {
	if l != nil {
		files.Release(l.log)
	}
}

var accessLines = sync.Pool{New: func() any { return new([]byte) }}

// write writes a request's line, if it gets one.
func (l *lineLog) write(f *site.Finished, service string, version uint64) {
	sampled := l.sample != nil && !remarkable(f)
	if sampled && rand.Uint64() >= l.below {
		return
	}
	buf := accessLines.Get().(*[]byte)
	b := appendAccess((*buf)[:0], f, service, version)
	if sampled {
		b = append(b, l.sample...)
	}
	b = append(b, "}\n"...)
	_, _ = l.log.Write(b)
	*buf = b
	accessLines.Put(buf)
}

// remarkable: its line is not left out.
func remarkable(f *site.Finished) bool {
	return f.Status >= 500 || f.Status < 200 && f.Status != 101 || f.Exchange.Cause != "" || f.Exchange.Attempts > 1
}

// appendAccess appends a line without its end.
func appendAccess(b []byte, f *site.Finished, service string, version uint64) []byte {
	in := f.In
	b = appendMoment(append(b, `{"time":"`...), f.Ended)
	b = append(b, `","client":"`...)
	if f.Remote.IsValid() {
		b = f.Remote.WithZone("").AppendTo(b) // a zone is any text
	}
	b = quoted(append(b, `","method":`...), in.Method)
	b = quoted(append(b, `,"host":`...), in.Authority)
	b = quoted(append(b, `,"target":`...), in.Target)
	b = append(append(append(b, `,"proto":"`...), in.Proto...), `","status":`...)
	b = strconv.AppendInt(b, int64(f.Status), 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), f.Bytes, 10)
	b = appendSeconds(append(b, `,"seconds":`...), time.Duration(f.Ended-f.Began))
	if service != "" {
		b = quoted(append(b, `,"service":`...), service)
	}
	b = appendAttempts(b, f.Trail)
	if version > 0 {
		b = strconv.AppendUint(append(b, `,"topology_version":`...), version, 10)
	}
	b = appendTrace(b, f)
	if f.Exchange.Cause != "" {
		b = append(append(append(b, `,"cause":"`...), f.Exchange.Cause...), '"')
	}
	if f.Exchange.Err != nil {
		b = quoted(append(b, `,"error":`...), f.Exchange.Err.Error())
	}
	return b
}

// appendMoment writes Unix nanoseconds in UTC by RFC 3339, with three digits behind the point. The standard library is quick
// for whole seconds only.
func appendMoment(b []byte, ns int64) []byte {
	b = time.Unix(ns/int64(time.Second), 0).UTC().AppendFormat(b, time.RFC3339)
	ms := ns / int64(time.Millisecond) % 1000
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// appendTrace names the trace that the request belongs to: as we follow it, or as the client says.
func appendTrace(b []byte, f *site.Finished) []byte {
	if f.Span != nil {
		id, _ := f.Span.IDs()
		return append(append(append(b, `,"trace_id":"`...), id...), '"')
	}
	if id := traceID(f.In.Fields); id != nil {
		return append(append(append(b, `,"trace_id":"`...), id...), '"')
	}
	return b
}

// appendAttempts lists the attempts; times that are not known are null.
func appendAttempts(b []byte, trail forward.Trail) []byte {
	first := true
	for i := range trail {
		t := &trail[i]
		if t.Upstream == "" { // between two rounds
			continue
		}
		if first {
			b = append(b, `,"attempts":[`...)
		} else {
			b = append(b, ',')
		}
		first = false
		b = quoted(append(b, `{"upstream":`...), t.Upstream)
		if t.Peer != nil {
			b = quoted(append(b, `,"addr":`...), t.Peer.Addr()) // of a host that only a request names: any text
		}
		b = strconv.AppendInt(append(b, `,"status":`...), int64(t.Status), 10)
		b = appendSeconds(append(b, `,"connect":`...), t.Connect)
		b = appendSeconds(append(b, `,"header":`...), t.Header)
		b = appendSeconds(append(b, `,"response":`...), t.Response)
		b = strconv.AppendInt(append(b, `,"bytes":`...), t.Length, 10)
		b = append(b, '}')
	}
	if !first {
		b = append(b, ']')
	}
	return b
}

// quoted appends a JSON string. What is no UTF-8 becomes U+FFFD, so that every line can be read.
func quoted[T string | []byte](b []byte, text T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	plain := 0 // from here on nothing was written yet
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, text[plain:i]...)
		switch {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			if r < 0xa0 { // a control character, which terminals obey
				b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
			} else {
				b = utf8.AppendRune(b, r)
			}
			i += size - 1
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		plain = i
	}
	return append(append(b, text[plain:]...), '"')
}

// appendSeconds writes a time with six digits behind the point, or null for one that nobody knows.
func appendSeconds(b []byte, d time.Duration) []byte {
	if d < 0 {
		return append(b, "null"...)
	}
	us := int64(d / time.Microsecond)
	b = append(strconv.AppendInt(b, us/1_000_000, 10), '.')
	for us, digit := us%1_000_000, int64(100_000); digit > 0; digit /= 10 {
		b = append(b, byte('0'+us/digit%10))
	}
	return b
}
