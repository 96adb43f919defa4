package forward

const (
	// spliceFrom is for how many bytes that are left of a body it is worth to set a way up that they take from socket to
	// socket, without passing through here.
	spliceFrom = 64 << 10
	// spliceLeave is what is left to be read of it all the same: the attempt ends before the last bytes go to the client.
	spliceLeave = 16 << 10
)

// spliceBody has the body go from socket to socket, but for its last bytes. Nothing moved: that can't be done. It tells
// whether the exchange has ended.
func (x *Exchange) spliceBody(body Source) (moved int64, ended bool) {
	from, ok := body.(Spliced)
	if !ok {
		return 0, false
	}
	to, ok := x.Client.(Splicer)
	if !ok {
		return 0, false
	}
	socket, ok := to.Socket()
	if !ok {
		return 0, false
	}
	gone := false
	moved, err := from.Splice(socket, spliceLeave, func(n int64, err error) error {
		err = to.Sent(n, err)
		gone = gone || err != nil
		return err
	})
	x.waited()
	x.out.Bytes += moved
	if try := x.try; try != nil {
		try.Length += moved
	}
	switch {
	case err == nil:
		return moved, false
	case gone:
		x.lost()
	default:
		x.succeed()
		x.cutShort(err)
	}
	return moved, true
}
