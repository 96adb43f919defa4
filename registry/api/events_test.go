package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

// watched tells each time that somebody looked for the newest event.
type watched struct {
	*registry.Store
	looked chan struct{}
}

func (w watched) LastEventSeq(ctx context.Context) (int64, error) {
	select {
	case w.looked <- struct{}{}:
	default:
	}
	return w.Store.LastEventSeq(ctx)
}

// waiting is an API whose waiting requests look every millisecond, and the database under it.
func waiting(t *testing.T, change func(*Config)) (http.Handler, *sqlx.DB, chan struct{}) {
	s, db := registrytest.SQLite(t)
	registrytest.Fleet(t, db)
	looked := make(chan struct{}, 1)
	return newAPI(t, watched{s, looked}, func(c *Config) {
		c.EventPoll = time.Millisecond
		if change != nil {
			change(c)
		}
	}), db, looked
}

// ask makes a request that waits, and returns when it has begun to.
func ask(t *testing.T, h http.Handler, looked chan struct{}, r *http.Request) <-chan *httptest.ResponseRecorder {
	t.Helper()
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answer <- w
	}()
	for range 3 {
		<-looked
	}
	select {
	case w := <-answer:
		t.Fatalf("it did not wait: %d %s", w.Code, w.Body)
	default:
	}
	return answer
}

func TestAFollowerGetsAnEventAsItComes(t *testing.T) {
	h, db, looked := waiting(t, nil)
	answer := ask(t, h, looked, httptest.NewRequest("GET", "/v1/events?after=107&wait_s=30&service=orders", nil))
	registrytest.Insert(t, db, "event", registrytest.Row{"seq": 108, "kind": "joined", "service": "billing"}) // is not asked for
	registrytest.Insert(t, db, "event", registrytest.Row{"seq": 109, "kind": "joined", "service": "orders", "iid": "a9"})
	list := decode[wire.EventList](t, <-answer)
	if len(list.Events) != 1 || list.Events[0].ID != "a9" || list.LastSeq != 109 {
		t.Errorf("%+v", list)
	}
}

func TestAFollowerIsToldHowFarWasLooked(t *testing.T) {
	h, db, _ := waiting(t, nil)
	registrytest.Insert(t, db, "event", registrytest.Row{"seq": 108, "kind": "joined", "service": "billing"})
	list := read[wire.EventList](t, h, "/v1/events?after=107&wait_s=0.01&service=orders")
	if len(list.Events) != 0 || list.LastSeq != 108 {
		t.Errorf("%+v", list)
	}
}

func TestAFollowerMissesNothingInSmallPages(t *testing.T) {
	h, _, _ := waiting(t, nil)
	var seqs []int64
	for after := int64(0); ; {
		list := read[wire.EventList](t, h, fmt.Sprintf("/v1/events?limit=2&after=%d", after))
		if len(list.Events) == 0 {
			break
		}
		for _, e := range list.Events {
			seqs = append(seqs, e.Seq)
		}
		after = list.LastSeq
	}
	if fmt.Sprint(seqs) != "[101 102 103 104 105 106 107]" {
		t.Error(seqs)
	}
}

func TestAFollowerLearnsThatTheDatabaseIsOlder(t *testing.T) {
	h, db, looked := waiting(t, nil)
	if list := read[wire.EventList](t, h, "/v1/events?after=5000&wait_s=30"); len(list.Events) != 0 || list.LastSeq != 107 {
		t.Errorf("%+v", list)
	}
	answer := ask(t, h, looked, httptest.NewRequest("GET", "/v1/events?after=107&wait_s=30", nil))
	if _, err := db.Exec("DELETE FROM event WHERE seq > 103"); err != nil {
		t.Fatal(err)
	}
	if list := decode[wire.EventList](t, <-answer); len(list.Events) != 0 || list.LastSeq != 103 {
		t.Errorf("%+v", list)
	}
}

func TestWaitingEndsWithTheClientAndWithTheServer(t *testing.T) {
	closing := make(chan struct{})
	h, _, looked := waiting(t, func(c *Config) { c.Closing = closing })
	ctx, leave := context.WithCancel(t.Context())
	gone := ask(t, h, looked, httptest.NewRequestWithContext(ctx, "GET", "/v1/events?after=107&wait_s=30", nil))
	leave()
	soon(t, gone)
	answer := ask(t, h, looked, httptest.NewRequest("GET", "/v1/events?after=107&wait_s=30", nil))
	close(closing)
	if w := soon(t, answer); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// soon is an answer that must come long before the 30 s that were asked for.
func soon(t *testing.T, answer <-chan *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	select {
	case w := <-answer:
		return w
	case <-time.After(15 * time.Second):
		t.Fatal("it goes on waiting")
		return nil
	}
}

func TestAsManyMayWaitAsAreConfigured(t *testing.T) {
	h, db, looked := waiting(t, func(c *Config) { c.MaxWaiting = 1 })
	answer := ask(t, h, looked, httptest.NewRequest("GET", "/v1/events?after=107&wait_s=30", nil))
	if w := get(t, h, "/v1/events?after=107&wait_s=30"); w.Code != 503 {
		t.Errorf("a second one: %d %s", w.Code, w.Body)
	}
	if w := get(t, h, "/v1/events?after=107"); w.Code != 200 {
		t.Errorf("one that does not wait: %d %s", w.Code, w.Body)
	}
	registrytest.Insert(t, db, "event", registrytest.Row{"seq": 108, "kind": "joined"})
	<-answer
	if w := get(t, h, "/v1/events?after=108&wait_s=0.01"); w.Code != 200 {
		t.Errorf("the place was not given back: %d %s", w.Code, w.Body)
	}
}

func TestEventsAreChosen(t *testing.T) {
	h := fleetAPI(t)
	for query, want := range map[string]string{
		"":                                  "[107 106 105 104 103 102 101]",
		"service=orders":                    "[107 105 103 102]",
		"service=orders&id=a4":              "[105]",
		"kind=left,unproven":                "[107 103]",
		"since=35m":                         "[107 106 105]",
		"since=2026-11-29T09:40:00Z":        "[107 106]",
		"since=2026-11-29T10:40:00%2B01:00": "[107 106]",
		"after=104":                         "[105 106 107]",
		"after=104&kind=stale":              "[105 106]",
		"after=0&limit=2":                   "[101 102]",
		"since=35m&after=105":               "[106 107]",
		"kind=superseded":                   "[]",
	} {
		var seqs []int64
		for _, e := range read[wire.EventList](t, h, "/v1/events?"+query).Events {
			seqs = append(seqs, e.Seq)
		}
		if got := fmt.Sprint(seqs); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
