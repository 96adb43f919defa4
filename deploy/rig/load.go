package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sort"
	"strings"
	"sync"
	"time"
)

// Failure is a request that got anything but 200 from an instance.
type Failure struct {
	At     time.Time // when it was sent
	Took   time.Duration
	URL    string
	Status int // 0: no answer
	Err    error
}

func (f Failure) String() string {
	return fmt.Sprintf("%s %s after %v: status %d, %v", f.At.Format("15:04:05.000"), f.URL, f.Took.Round(time.Millisecond), f.Status, f.Err)
}

// Summary is what a Load has seen.
type Summary struct {
	Sent       int
	Failures   []Failure
	ByInstance map[string]int // answers by service/id
	Slowest    time.Duration
	Began      time.Time
	Lasted     time.Duration
}

func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests in %v, %d failed, slowest %v, %d instances answered", s.Sent, s.Lasted.Round(time.Millisecond), len(s.Failures),
		s.Slowest.Round(time.Millisecond), len(s.ByInstance))
	for i, f := range s.Failures {
		if i == 10 {
			b.WriteString("\n  …")
			break
		}
		fmt.Fprintf(&b, "\n  %v", f)
	}
	return b.String()
}

// Load sends GETs at a constant rate, whatever the answers do: a stall is met by more requests at once, not by fewer.
type Load struct {
	urls   []string
	client *http.Client
	stop   context.CancelFunc
	done   chan struct{}

	mu  sync.Mutex
	sum Summary
}

// StartLoad sends perSecond requests a second, to each of the URLs in turn, until Stop. A URL's path must be /SERVICE or below it:
// an answer of another service's instance is a failure.
func StartLoad(perSecond int, urls ...string) *Load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{urls: urls, stop: cancel, done: make(chan struct{}),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: 512, IdleConnTimeout: 5 * time.Second}},
		sum:    Summary{ByInstance: map[string]int{}, Began: time.Now()}}
	go l.run(ctx, time.Second/time.Duration(perSecond))
	return l
}

// run sends what is due on each tick, so that a late tick is made up for.
func (l *Load) run(ctx context.Context, every time.Duration) {
	defer close(l.done)
	var open sync.WaitGroup
	defer open.Wait()
	tick := time.NewTicker(max(every, 2*time.Millisecond))
	defer tick.Stop()
	begin, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for ; sent < int(time.Since(begin)/every); sent++ {
			target := l.urls[sent%len(l.urls)]
			open.Go(func() { l.one(target) })
		}
	}
}

// one sends a request and books its outcome. A connection that the proxy dropped under it counts as a failure, although
// Go's client would quietly try again on another.
func (l *Load) one(target string) {
	began, conns := time.Now(), 0
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { conns++ }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), http.MethodGet, target, nil)
	status, instance := 0, ""
	if err == nil {
		var resp *http.Response
		if resp, err = l.client.Do(req); err == nil {
			status, instance = resp.StatusCode, resp.Header.Get(HeaderInstance)
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if err == nil && status == http.StatusOK && instance == "" {
		err = errors.New("the answer comes from no instance")
	}
	if err == nil && instance != "" && l.foreign(target, instance) {
		err = fmt.Errorf("answered by %s, which this request was not for", instance)
	}
	if err == nil && conns > 1 {
		err = fmt.Errorf("the proxy dropped %d connections under the request", conns-1)
	}
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum.Sent++
	l.sum.Slowest = max(l.sum.Slowest, took)
	if err != nil || status != http.StatusOK {
		l.sum.Failures = append(l.sum.Failures, Failure{At: began, Took: took, URL: target, Status: status, Err: err})
		return
	}
	l.sum.ByInstance[instance]++
}

// foreign reports whether the instance belongs to another service than the one that the URL's first segment names.
func (*Load) foreign(raw, instance string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return true
	}
	segment, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	service, _, _ := strings.Cut(instance, "/")
	return service != segment
}

// Now is the Summary so far.
func (l *Load) Now() Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sum
	s.Lasted = time.Since(s.Began)
	s.Failures = append([]Failure(nil), s.Failures...)
	s.ByInstance = make(map[string]int, len(l.sum.ByInstance))
	for k, v := range l.sum.ByInstance {
		s.ByInstance[k] = v
	}
	return s
}

// Stop ends the load, waits for the open requests and returns the Summary. It may be called again.
func (l *Load) Stop() Summary {
	l.stop()
	<-l.done
	l.client.CloseIdleConnections()
	return l.Now()
}

// Silent lists those of the names that answered nothing, sorted.
func (s Summary) Silent(names []string) []string {
	var out []string
	for _, n := range names {
		if s.ByInstance[n] == 0 {
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return out
}
