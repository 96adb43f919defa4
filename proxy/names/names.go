// Package names knows the addresses behind the names in server lines: those that are looked up once when a configuration
// is read, as nginx does, and those that are asked for again and again while it is in force (parameter resolve).
//
// It answers at once from what it remembers, so that building a routing table never waits for a name server twice; it
// builds no tables and knows no peers. Go's resolver hides how long an answer holds, so a name without valid= is asked for
// every 5 s.
package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
)

// Asker finds addresses: the network in production.
type Asker interface {
	// Host gives the addresses of a name, in the order in which they are used.
	Host(ctx context.Context, r topology.Resolver, host string) ([]netip.Addr, error)
	// Service gives the servers that the SRV records of a service at a host name.
	Service(ctx context.Context, r topology.Resolver, service, host string) ([]topology.Answer, error)
}

// Book remembers names. Its methods are safe for concurrent use.
type Book struct {
	asker Asker
	log   zerolog.Logger

	mu    sync.Mutex
	hosts map[string]found
	asked map[key]*query
	wake  chan struct{} // one slot: there is a query that was never asked
}

type found struct {
	addrs []netip.Addr
	err   error
}

// key names a query; a Resolver can't be a map's key itself.
type key struct{ host, service, resolver string }

// query is a name that is asked for again and again.
type query struct {
	topology.Query
	answers []topology.Answer
	err     error
	next    time.Time // when to ask again; zero: never asked
	wanted  bool      // since the last Sweep
}

const (
	everyDefault = 5 * time.Second // between two questions without valid=
	afterFailure = 5 * time.Second
	atLoad       = 10 * time.Second // for a name that is needed to begin
)

// NewBook is an empty Book. A nil asker is the network.
func NewBook(asker Asker, log zerolog.Logger) *Book {
	if asker == nil {
		asker = network{}
	}
	return &Book{asker: asker, log: log, hosts: map[string]found{}, asked: map[key]*query{}, wake: make(chan struct{}, 1)}
}

// Lookup gives the addresses of a name by the system's resolver. The first call for a name waits for the answer, 10 s at
// most; later ones are answered from memory until Forget.
func (b *Book) Lookup(host string) ([]netip.Addr, error) {
	b.mu.Lock()
	f, known := b.hosts[host]
	b.mu.Unlock()
	if known {
		return f.addrs, f.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), atLoad)
	defer cancel()
	f.addrs, f.err = b.asker.Host(ctx, topology.Resolver{}, host)
	if f.err != nil {
		f.err = plain(host, f.err)
	}
	b.mu.Lock()
	b.hosts[host] = f
	b.mu.Unlock()
	return f.addrs, f.err
}

// plain is the same text for the same cause, however often it comes.
func plain(host string, err error) error {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("%s has no address", host)
	case errors.As(err, &dns):
		return fmt.Errorf("%s: %s", host, dns.Err)
	}
	return fmt.Errorf("%s: %w", host, err)
}

// Forget makes Lookup ask anew: a configuration is read again.
func (b *Book) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.hosts)
}

// Query gives what is known of a name that Run asks for; nothing at first. It never waits.
func (b *Book) Query(q topology.Query) ([]topology.Answer, error) {
	k := key{q.Host, q.Service, fmt.Sprint(q.Resolver)}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.asked[k]
	if known == nil {
		known = &query{Query: q}
		b.asked[k] = known
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	known.wanted = true
	if known.answers != nil {
		return known.answers, nil // the last good ones, also while the name server fails
	}
	return nil, known.err
}

// Host asks for a name now, and remembers nothing.
func (b *Book) Host(ctx context.Context, r topology.Resolver, host string) ([]netip.Addr, error) {
	answers, err := b.one(ctx, topology.Query{Host: host, Resolver: r})
	if err != nil {
		return nil, plain(host, err)
	}
	addrs := make([]netip.Addr, len(answers))
	for i, a := range answers {
		addrs[i] = a.Addr.Addr()
	}
	return addrs, nil
}

// Sweep forgets the queries that nobody made since the last Sweep.
func (b *Book) Sweep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, q := range b.asked {
		if !q.wanted {
			delete(b.asked, k)
		}
		q.wanted = false
	}
}

// Run asks for the names of queries until ctx ends, and calls changed when an answer is another than before.
func (b *Book) Run(ctx context.Context, changed func()) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for ctx.Err() == nil {
		due, wait := b.due(time.Now())
		if b.ask(ctx, due) {
			changed()
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-b.wake:
		case <-timer.C:
		}
	}
}

// due is the queries to make now, and how long the others can wait.
func (b *Book) due(now time.Time) (list []*query, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = time.Minute
	for _, q := range b.asked {
		if !q.next.After(now) {
			list = append(list, q)
			wait = min(wait, q.interval())
			continue
		}
		wait = min(wait, q.next.Sub(now))
	}
	return list, max(wait, 10*time.Millisecond)
}

func (q *query) interval() time.Duration {
	if q.Resolver.Valid > 0 {
		return q.Resolver.Valid
	}
	return everyDefault
}

// ask makes queries side by side and reports whether an answer differs.
func (b *Book) ask(ctx context.Context, list []*query) (differs bool) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, q := range list {
		all.Go(func() {
			answers, err := b.one(ctx, q.Query)
			if ctx.Err() == nil && b.take(q, answers, err) {
				mu.Lock()
				differs = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return differs
}

func (b *Book) one(ctx context.Context, q topology.Query) ([]topology.Answer, error) {
	limit := q.Resolver.Timeout
	if limit <= 0 {
		limit = topology.DefaultResolverTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if q.Service != "" {
		return b.asker.Service(ctx, q.Resolver, q.Service, q.Host)
	}
	addrs, err := b.asker.Host(ctx, q.Resolver, q.Host)
	if err != nil {
		return nil, err
	}
	answers := make([]topology.Answer, len(addrs))
	for i, a := range addrs {
		answers[i] = topology.Answer{Addr: netip.AddrPortFrom(a, 0)}
	}
	return answers, nil
}

// take notes an answer and reports whether it is another one. The order in which a name server lists addresses means
// nothing: it shuffles them, and a peer must not move for that.
func (b *Book) take(q *query, answers []topology.Answer, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.next = time.Now().Add(q.interval())
	if err != nil {
		q.next = time.Now().Add(afterFailure)
		err = plain(q.Host, err)
		if q.err == nil || q.err.Error() != err.Error() {
			b.log.Warn().Err(err).Msg("a name can't be resolved")
		}
		first := q.err == nil && q.answers == nil
		q.err = err
		return first
	}
	slices.SortStableFunc(answers, func(a, b topology.Answer) int { return a.Addr.Compare(b.Addr) })
	same := q.err == nil && slices.Equal(answers, q.answers)
	q.answers, q.err = answers, nil
	return !same
}
