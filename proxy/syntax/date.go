package syntax

import (
	"sync/atomic"
	"time"
)

// dated is the text of a second, shared by all answers in it.
type dated struct {
	second int64
	text   []byte
}

var lastDate atomic.Pointer[dated]

// Date is the value of a Date field of now, as RFC 9110, 5.6.7 writes it. It must not be changed.
func Date() []byte {
	now := time.Now()
	if d := lastDate.Load(); d != nil && d.second == now.Unix() {
		return d.text
	}
	d := &dated{now.Unix(), []byte(now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))}
	lastDate.Store(d)
	return d.text
}
