package http2

import "sync"

// idlers are goroutines that wait for the next request of a connection: their stacks have grown already.
type idlers struct {
	work chan *stream

	mu   sync.Mutex
	free int
	over bool
}

// mostIdle is how many of them a connection keeps.
const mostIdle = 16

// start has a request handled.
func (i *idlers) start(s *stream) {
	select {
	case i.work <- s:
	default:
		go i.serve(s)
	}
}

func (i *idlers) serve(s *stream) {
	for s != nil {
		s.handle()
		i.mu.Lock()
		stays := i.free < mostIdle
		if stays {
			i.free++
		}
		i.mu.Unlock()
		if !stays {
			return
		}
		s = <-i.work
		i.mu.Lock()
		i.free--
		i.mu.Unlock()
	}
}

// trim ends those who wait: a connection that is not used holds no stacks.
func (i *idlers) trim() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for !i.over {
		select {
		case i.work <- nil:
		default:
			return
		}
	}
}

// end ends those who wait for more; others end with their requests. Nothing is started any more.
func (i *idlers) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	close(i.work)
}
