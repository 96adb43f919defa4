package certs

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"sync"
	"syscall"
	"time"
)

// Store holds what was loaded, over the life of several configurations, and looks at the files of all that is held. The zero
// value is ready. It is safe for concurrent use.
type Store struct {
	ReadFile func(name string) ([]byte, error) // nil: ReadRegular
	Every    time.Duration                     // between two looks of Run; 0: 2 s
	Watch    func(Event)                       // is told what became of files that changed; nil: nobody is

	mu      sync.Mutex
	all     map[string]holding
	keys    sync.Once
	tickets *tls.Config // whose keys all servers without files of their own share
}

// Event is that files have changed.
type Event struct {
	Files []string
	Err   error // why they can't be used, so that what was read before stays; nil: they are in force
}

// holding is a Server or a Client: something that is loaded of files.
type holding interface {
	of() *held
	load(read reader, shared *tls.Config) error
}

// held is what the Store knows of a holding. Store.mu guards it.
type held struct {
	store   *Store
	key     string
	files   []string
	users   int
	loaded  map[string]stamp // of the files as they are in force
	pending map[string]stamp // another look that they have since; nil: none
	failed  map[string]stamp // one that could not be used
	retry   time.Time        // when that is tried again all the same
}

func (h *held) of() *held { return h }

// Close ends holding it. With its last user it is looked at no more.
func (h *held) Close() {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(s.all, h.key)
	}
}

// Server loads what listeners need. When it is held already, it is loaded again where a file has changed; then, and on an
// error too, all that hold it have what is in force. With keep, files that can't be used are no error as long as it is
// held: what was read before stays.
func (s *Store) Server(set Settings, keep bool) (*Server, error) {
	made := &Server{set: set, held: held{key: set.key(), files: set.files()}}
	h, err := s.hold(made, keep)
	if err != nil {
		return nil, err
	}
	return h.(*Server), nil
}

// Client loads what is needed towards backends, as Server does.
func (s *Store) Client(p Peer, keep bool) (*Client, error) {
	made := &Client{set: p, held: held{key: p.key(), files: p.files()}}
	h, err := s.hold(made, keep)
	if err != nil {
		return nil, err
	}
	return h.(*Client), nil
}

func (s *Store) hold(made holding, keep bool) (holding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.all[made.of().key]
	if there == nil {
		there = made
	} else if maps.Equal(stamps(there.of().files), there.of().loaded) {
		there.of().users++
		return there, nil
	}
	h := there.of()
	if err := s.reload(there); err != nil {
		if !keep || there == made {
			return nil, err
		}
		h.failed = nil // the next looks try again, and tell
	}
	if h.users++; there == made {
		h.store = s
		if s.all == nil {
			s.all = map[string]holding{}
		}
		s.all[h.key] = there
	}
	return there, nil
}

// reload loads a holding. The mutex is held. Files that were put in place of others meanwhile may have given half of each
// pair: then they are read once more.
func (s *Store) reload(x holding) error {
	h := x.of()
	now := stamps(h.files) // before they are read: what changes meanwhile shows in the next look
	h.pending = nil
	err := x.load(s.reader(), s.shared())
	if since := stamps(h.files); err != nil && !maps.Equal(since, now) {
		now, err = since, x.load(s.reader(), s.shared())
	}
	if err != nil {
		h.failed, h.retry = now, time.Now().Add(retryAfter)
		return err
	}
	h.loaded, h.failed = now, nil
	return nil
}

func (s *Store) reader() reader {
	if s.ReadFile != nil {
		return s.ReadFile
	}
	return ReadRegular
}

// shared has the keys of session tickets, which crypto/tls makes and changes once a day.
func (s *Store) shared() *tls.Config {
	s.keys.Do(func() { s.tickets = &tls.Config{MinVersion: tls.VersionTLS12} })
	return s.tickets
}

// Run looks at the files until ctx ends.
func (s *Store) Run(ctx context.Context) {
	every := s.Every
	if every <= 0 {
		every = 2 * time.Second
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.Look(false)
		}
	}
}

// retryAfter is how long what can't be used is left alone: the reason may not lie in the files.
const retryAfter = time.Minute

// Look loads what has changed. A change counts when the files have looked the same twice, as one that is being written is
// not whole yet, or its key not there; with now it counts at once. What can't be used is told, and loaded again when it
// changes again or a minute has passed.
func (s *Store) Look(now bool) {
	var events []Event
	s.mu.Lock()
	for _, x := range s.all {
		if e, ok := s.look(x, now); ok {
			events = append(events, e)
		}
	}
	s.mu.Unlock()
	if s.Watch != nil {
		for _, e := range events {
			s.Watch(e)
		}
	}
}

func (s *Store) look(x holding, now bool) (Event, bool) {
	h := x.of()
	if len(h.files) == 0 {
		return Event{}, false
	}
	found := stamps(h.files)
	switch {
	case maps.Equal(found, h.loaded):
		h.pending, h.failed = nil, nil
		return Event{}, false
	case !now && h.failed != nil && maps.Equal(found, h.failed) && time.Now().Before(h.retry):
		return Event{}, false
	case !now && !maps.Equal(found, h.failed) && !maps.Equal(found, h.pending):
		h.pending = found
		return Event{}, false
	}
	return Event{Files: h.files, Err: s.reload(x)}, true
}

// Current tells whether all that is held is what stands in the files, as far as Look has seen them.
func (s *Store) Current() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.all {
		if x.of().failed != nil {
			return false
		}
	}
	return true
}

// Expiry is when the first certificate of any server in force expires; zero: there is none.
func (s *Store) Expiry() (first time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.all {
		if server, ok := x.(*Server); ok {
			if t := server.Expires(); !t.IsZero() && (first.IsZero() || t.Before(first)) {
				first = t
			}
		}
	}
	return first
}

// stamp is what is looked at of a file. All 0: it is not there.
type stamp struct {
	time      int64 // Unix ns
	size      int64
	mode      os.FileMode // with owner: it may have become readable
	owner     [2]uint32
	dev, node uint64 // another file may have come in its place, or behind its link
}

func stamps(files []string) map[string]stamp {
	all := make(map[string]stamp, len(files))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			all[file] = stamp{}
			continue
		}
		s := stamp{time: info.ModTime().UnixNano(), size: info.Size(), mode: info.Mode()}
		if sys, ok := info.Sys().(*syscall.Stat_t); ok {
			s.owner = [2]uint32{sys.Uid, sys.Gid}
			s.dev, s.node = uint64(sys.Dev), sys.Ino //nolint:unconvert // not everywhere of the same type
		}
		all[file] = s
	}
	return all
}
