package http2

import "runtime"

// flush writes what waits, as much at once as there is: answers that end about the same time share a write.
func (x *session) flush() {
	for {
		select {
		case <-x.wake:
		case <-x.over:
			return
		}
		runtime.Gosched() // those who are about to add something
		x.mu.Lock()
		for len(x.out) > 0 && x.broken == nil {
			full := x.out
			x.out = x.spare[:0]
			x.batch++
			x.mu.Unlock()
			x.stamps.writing.Store(x.server.now() + int64(x.info.Settings.ClientSend))
			_, err := x.conn.Write(full)
			x.stamps.writing.Store(0)
			x.mu.Lock()
			if x.spare = full; cap(full) > 4*mostWaiting {
				x.spare = nil
			}
			if err != nil {
				x.fail(err)
				_ = x.conn.SetReadDeadline(longAgo) // the reader is to see it
			}
			x.room.Broadcast()
		}
		x.flushing = false
		x.room.Broadcast()
		if len(x.out) == 0 && cap(x.spare) > frameSize && len(x.streams) == 0 {
			x.spare, x.out = nil, nil // unused connections hold little
		}
		x.mu.Unlock()
	}
}

// waitRoom waits until little enough waits to be written. The mutex is held.
func (x *session) waitRoom() error {
	for len(x.out) >= mostWaiting && x.broken == nil {
		x.signal()
		x.room.Wait()
	}
	return x.broken
}
