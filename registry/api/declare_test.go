package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/registrytest"
	"github.com/upstrand/upstrand/registry/wire"
)

// declaring is an API that takes declarations, over the fleet.
func declaring(t testing.TB, s *registry.Store, db *sqlx.DB) http.Handler {
	t.Helper()
	registrytest.Fleet(t, db)
	return newAPI(t, s, func(c *Config) { c.Declarer = s })
}

func onSQLite(t testing.TB) http.Handler {
	s, db := registrytest.SQLite(t)
	return declaring(t, s, db)
}

func declare(t testing.TB, h http.Handler, body any) *httptest.ResponseRecorder {
	t.Helper()
	text, isText := body.(string)
	if !isText {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/topology", strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	return call(t, h, r)
}

// applied declares a file, which must succeed.
func applied(t testing.TB, h http.Handler, req wire.DeclareRequest) wire.DeclareAnswer {
	t.Helper()
	if req.Author == "" {
		req.Author = "joe@host"
	}
	w := declare(t, h, req)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return decode[wire.DeclareAnswer](t, w)
}

func remove(t testing.TB, h http.Handler, name, query string) *httptest.ResponseRecorder {
	t.Helper()
	return call(t, h, httptest.NewRequest(http.MethodDelete, "/v1/topology/declared/"+url.PathEscape(name)+"?"+query, nil))
}

const canary = `upstream orders-b { discover orders zone=b; }
upstream orders-a { discover orders zone=a; }
upstrand canary { upstream orders-b; upstream orders-a; next_upstream_statuses 5xx; }
server { location /orders { proxy_pass http://$upstrand_canary; } }
`

// The whole life of a file, as the API tells it, on every database.
func TestADeclaredFileLives(t *testing.T) {
	registrytest.Each(t, func(t *testing.T, s *registry.Store, db *sqlx.DB) {
		h := declaring(t, s, db)
		var text bytes.Buffer
		show := func(title string, w *httptest.ResponseRecorder) {
			fmt.Fprintf(&text, "%s\n%s\n\n", title, http.StatusText(w.Code))
			if err := json.Indent(&text, w.Body.Bytes(), "", "  "); err != nil {
				t.Fatal(err)
			}
			text.WriteString("\n")
		}
		req := wire.DeclareRequest{Text: canary, Author: "joe@host", Comment: "zone b first", DryRun: true}
		show("dry run", declare(t, h, req))
		show("nothing is there", get(t, h, "/v1/topology/declared"))
		req.DryRun = false
		show("apply", declare(t, h, req))
		show("again", declare(t, h, req))
		show("faults", declare(t, h, wire.DeclareRequest{Name: "aside", Author: "joe@host", Text: "upstream orders-a { server x:0; }\nserver { location /x { proxy_pass http://nobody; } }\n"}))
		show("the file", get(t, h, "/v1/topology/declared/main"))
		show("expected another", declare(t, h, wire.DeclareRequest{Text: "# nothing", Author: "ann@host", Expected: new(int64)}))
		show("delete", remove(t, h, "main", "author=ann@host&comment=over&expected_revision=1"))
		show("all", get(t, h, "/v1/topology/declared"))
		show("history", get(t, h, "/v1/topology/declared/main/history?limit=1"))
		show("revision 1", get(t, h, "/v1/topology/declared/main/history/1"))
		show("gone", get(t, h, "/v1/topology/declared/main"))
		show("events", get(t, h, "/v1/events?kind=topology_declared"))
		golden(t, "declared.txt", text.Bytes())
	})
}

func TestWhatIsNoDeclarationIsRefused(t *testing.T) {
	h := onSQLite(t)
	for body, want := range map[string][]string{
		``:                            {"400", "EOF"},
		`[1]`:                         {"400", "cannot unmarshal"},
		`{"text":"","authr":"x"}`:     {"400", `unknown field \"authr\"`},
		`{"text":"","author":"x"} {}`: {"400", "more follows"},
		`{"text":"upstream a { }"}`:   {"400", "body.author"},
		`{"name":"A b","author":" "}`: {"400", "body.author", "body.name", "body.text"},
		`{"text":null,"author":"x"}`:  {"400", "body.text"},
		`{"text":" \n","author":"x"}`: {"422", "body.text", "is empty", "DELETE /v1/topology/declared/main"},
		"{\"author\":\"x\",\"text\":\"# caf\xe9\"}":                                        {"400", "is not UTF-8"},
		`{"author":"x","comment":"` + strings.Repeat("c", 1025) + `"}`:                     {"400", "body.comment"},
		`{"author":"x","expected_revision":-1}`:                                            {"400", "body.expected_revision"},
		`{"author":"x","text":"` + strings.Repeat("#", registry.MaxDeclared+1) + `"}`:      {"400", "body.text"},
		`{"author":"x","text":"` + strings.Repeat(" ", 8*registry.MaxDeclared) + `"}`:      {"413", "is too large"},
		`{"author":"x","text":"server { location /x { proxy_pass http://nobody; } }"}`:     {"422", `"main:1"`, "no service of that name is known"},
		`{"author":"x","text":"include /etc/passwd; upstream a { include /etc/passwd; }"}`: {"422", `"main:1"`, "includes nothing"},
	} {
		w := declare(t, h, body)
		for _, part := range want {
			if text := fmt.Sprint(w.Code, w.Body); !strings.Contains(text, part) {
				t.Errorf("%.60s: %.400s, want %s", body, text, part)
			}
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/topology", strings.NewReader(`{"author":"x"}`))
	r.Header.Set("Content-Type", "text/plain")
	if w := call(t, h, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r = httptest.NewRequest(http.MethodPost, "/v1/topology", strings.NewReader(`{"author":"x"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if w := call(t, h, r); w.Code != http.StatusForbidden {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for query, want := range map[string]int{"": 400, "author=%20": 400, "author=x": 404, "author=x&expected_revision=7": 409, "author=x&dry_run=perhaps": 400} {
		if w := remove(t, h, "main", query); w.Code != want {
			t.Errorf("delete with %q: %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
	for _, path := range []string{"/v1/topology/declared/x", "/v1/topology/declared/x/history", "/v1/topology/declared/x/history/1"} {
		if w := get(t, h, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if d := read[wire.DeclaredTopology](t, h, "/v1/topology/declared"); d.Revision != 0 || len(d.Files) != 0 {
		t.Errorf("%+v", d)
	}
}

func TestOnlyOneOfThoseWhoExpectTheSameIsServed(t *testing.T) {
	h := onSQLite(t)
	applied(t, h, wire.DeclareRequest{Text: "upstream a { server 10.0.0.1:80; }"})
	expected := int64(1)
	var wg sync.WaitGroup
	codes := make([]int, 6)
	for i := range codes {
		wg.Go(func() {
			codes[i] = declare(t, h, wire.DeclareRequest{Text: fmt.Sprintf("upstream a { server 10.0.1.%d:80; }", i), Author: "x", Expected: &expected}).Code
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, c := range codes {
		count[c]++
	}
	if count[200] != 1 || count[409] != len(codes)-1 {
		t.Errorf("%v", count)
	}
	// Who expects nothing is planned again and not refused.
	for i := range codes {
		wg.Go(func() {
			codes[i] = declare(t, h, wire.DeclareRequest{Name: fmt.Sprint("f", i), Text: fmt.Sprintf("upstream u%d { server 10.0.1.1:80; }", i), Author: "x"}).Code
		})
	}
	wg.Wait()
	if d := read[wire.DeclaredTopology](t, h, "/v1/topology/declared"); d.Revision != 8 || len(d.Files) != 7 {
		t.Errorf("%v: revision %d, %d files", codes, d.Revision, len(d.Files))
	}
}

// A name can't be declared in two files that come at the same time: each is planned with the other.
func TestFilesThatComeAtOnceAreOneSet(t *testing.T) {
	h := onSQLite(t)
	var wg sync.WaitGroup
	codes := make([]int, 4)
	for i := range codes {
		wg.Go(func() {
			codes[i] = declare(t, h, wire.DeclareRequest{Name: fmt.Sprint("f", i), Text: "upstream same { server 10.0.1.1:80; }", Author: "x"}).Code
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, c := range codes {
		count[c]++
	}
	if count[200] != 1 || count[422] != 3 {
		t.Errorf("%v", count)
	}
}

// overtaken is a store in which another change comes between each plan and its change, n times.
type overtaken struct {
	*registry.Store
	n    int
	text string
}

func (o *overtaken) Snapshot(ctx context.Context) (registry.Snapshot, error) {
	snap, err := o.Store.Snapshot(ctx)
	if o.n > 0 {
		o.n--
		if _, _, err := o.Declare(ctx, registry.Declare{Name: "other", Text: fmt.Sprintf(o.text, o.n), Author: "other"}); err != nil {
			return snap, err
		}
	}
	return snap, err
}

// What comes in between is planned with, so often as it takes within reason.
func TestAPlanIsForWhatItIsCarriedOutOn(t *testing.T) {
	for name, c := range map[string]struct {
		n        int
		text     string
		expected *int64
		want     string
	}{
		"another upstream":  {2, "upstream b%d { server 10.0.0.1:80; }", nil, "200"},
		"the same upstream": {1, "upstream a { server 10.0.0.%d:80; }", nil, "422 other:1"},
		"too often":         {100, "upstream b%d { server 10.0.0.1:80; }", nil, "409"},
		"what was expected": {1, "upstream b%d { server 10.0.0.1:80; }", new(int64), "409"},
	} {
		s, db := registrytest.SQLite(t)
		registrytest.Fleet(t, db)
		h := newAPI(t, s, func(cfg *Config) { cfg.Declarer = &overtaken{Store: s, n: c.n, text: c.text} })
		w := declare(t, h, wire.DeclareRequest{Text: "upstream a { server 10.0.0.1:80; }", Author: "x", Expected: c.expected})
		code, part, _ := strings.Cut(c.want, " ")
		if fmt.Sprint(w.Code) != code || !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s: %d %s, want %s", name, w.Code, w.Body, c.want)
		}
	}
}

func TestARegistryThatTakesNoDeclarationsSaysSo(t *testing.T) {
	if w := declare(t, fleetAPI(t), wire.DeclareRequest{Author: "x", Text: canary}); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Names of routes may be so long that a hundred of them are more than an event may have.
func TestManyLongRoutesCanBeDeclared(t *testing.T) {
	h := onSQLite(t)
	var text strings.Builder
	text.WriteString("server {\n")
	for i := range 120 {
		fmt.Fprintf(&text, "location /%d%s { proxy_pass http://orders; }\n", i, strings.Repeat("<", 1000)) // six bytes each in JSON
	}
	text.WriteString("}\n")
	if a := applied(t, h, wire.DeclareRequest{Text: text.String()}); !a.Applied || len(a.Changes) != 120 {
		t.Errorf("applied %v, %d changes", a.Applied, len(a.Changes))
	}
	events := get(t, h, "/v1/events?kind=topology_declared").Body.String()
	if !strings.Contains(events, "120 routes added") {
		t.Errorf("the event: %.300s", events)
	}
}

func TestAnAnswerNamesSoManyFaultsAtMost(t *testing.T) {
	w := declare(t, onSQLite(t), wire.DeclareRequest{Author: "x", Text: strings.Repeat("server { listen 80; }\n", 2000)})
	p := decode[wire.Problem](t, w)
	if w.Code != http.StatusUnprocessableEntity || len(p.Errors) != mostFaults || p.Detail != "file main can't be declared; the first 500 of 4000 faults follow" {
		t.Errorf("%d %d %s", w.Code, len(p.Errors), p.Detail)
	}
}
