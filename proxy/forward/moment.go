package forward

import "github.com/upstrand/upstrand/proxy/balance"

// moment is the present: what the clock read last, as long as nothing was waited for since. To read it costs more than
// most of what happens between two readings.
func (x *Exchange) moment() int64 {
	if x.At == 0 {
		x.At = x.Clock()
	}
	return x.At
}

// waited forgets the last reading: time may have passed.
func (x *Exchange) waited() { x.At = 0 }

// endPass ends the open attempt. Without a reading at hand the group reads the clock itself, if it wants to know the time.
func (x *Exchange) endPass(r balance.Result) {
	if x.At == 0 {
		x.pass.End(r)
		return
	}
	x.pass.EndAt(r, x.At)
}

// headPass tells the group that the head of the answer which stays has come, and to which session it belongs.
func (x *Exchange) headPass(session []byte) {
	if session != nil {
		x.pass.Learn(session)
	}
	if x.At == 0 {
		x.pass.Header()
		return
	}
	x.pass.HeaderAt(x.At)
}
