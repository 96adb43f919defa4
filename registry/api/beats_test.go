package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry/wire"
)

// topic is a heartbeat topic that takes what it is told to.
type topic struct {
	taken []Message
	fail  func(Message) error
	away  bool // it takes nothing until the caller gives up
}

func (p *topic) Publish(ctx context.Context, messages []Message) []error {
	if p.away {
		<-ctx.Done()
		return []error{ctx.Err()} // shorter than the messages: none was written
	}
	errs, failed := make([]error, len(messages)), false
	for i, m := range messages {
		if p.fail != nil {
			errs[i] = p.fail(m)
		}
		if errs[i] != nil {
			failed = true
			continue
		}
		p.taken = append(p.taken, m)
	}
	if !failed {
		return nil
	}
	return errs
}

func (p *topic) keys() []string {
	var keys []string
	for _, m := range p.taken {
		keys = append(keys, string(m.Key))
	}
	return keys
}

func post(body, contentType string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/beats", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.RemoteAddr = "192.0.2.7:41234"
	return r
}

func beatsAPI(t testing.TB, p Publisher) http.Handler {
	return newAPI(t, brokenStore{}, func(c *Config) { c.Publisher, c.PublishTimeout = p, 20*time.Millisecond })
}

func beat(id string, more ...string) string {
	return fmt.Sprintf(`{"service":"orders","id":%q,"ip":"10.0.0.1","port":8080%s}`, id, strings.Join(more, ""))
}

func TestBeatsAreAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		body, contentType string
		keys              []string
	}{
		"one":             {beat("a1"), "application/json", []string{"orders/a1"}},
		"with a charset":  {"\n " + beat("a1") + " ", "application/json; charset=utf-8", []string{"orders/a1"}},
		"an array":        {"[" + beat("a1") + "," + beat("a2") + "]", "application/json", []string{"orders/a1", "orders/a2"}},
		"lines":           {beat("a1") + "\r\n\n" + beat("a2"), "application/x-ndjson", []string{"orders/a1", "orders/a2"}},
		"one of one line": {beat("a1") + "\n", "application/x-ndjson", []string{"orders/a1"}},
		"a goodbye":       {`{"service":"orders","id":"a1","status":"leaving"}`, "application/json", []string{"orders/a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &topic{}
			w := call(t, beatsAPI(t, p), post(c.body, c.contentType))
			answer := decode[wire.BeatsAnswer](t, w)
			if w.Code != 202 || answer.Accepted != len(c.keys) || len(answer.Beats) != len(c.keys) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if diff := cmp.Diff(c.keys, p.keys()); diff != "" {
				t.Error(diff)
			}
			for _, m := range p.taken {
				if _, err := heartbeat.DecodeRecord(m.Key, m.Value); err != nil {
					t.Errorf("%s is not what a listener takes: %v", m.Value, err)
				}
			}
		})
	}
}

func TestGoodBeatsBesideBadOnesAreAcceptedAndSaidSo(t *testing.T) {
	p := &topic{}
	metrics := prometheus.NewRegistry()
	h := newAPI(t, brokenStore{}, func(c *Config) { c.Publisher, c.Registerer = p, metrics })
	body := "[" + strings.Join([]string{
		beat("a1"), `{"service":"Orders","id":"a2","ip":"10.0.0.1","port":0,"colour":"red"}`, beat("a3"), `"x"`, `{"service":"orders","id":"a4"}`,
	}, ",") + "]"
	w := call(t, h, post(body, "application/json"))
	problem := decode[wire.Problem](t, w)
	if w.Code != 422 || problem.Detail != "some beats are invalid (of 5: 2 accepted, 3 invalid)" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff([]string{"orders/a1", "orders/a3"}, p.keys()); diff != "" {
		t.Error(diff)
	}
	want := []wire.BeatResult{
		{Index: 0, Service: "orders", ID: "a1", Result: "accepted"},
		{Index: 1, Service: "Orders", ID: "a2", Result: "invalid", Reason: problem.Result.Beats[1].Reason},
		{Index: 2, Service: "orders", ID: "a3", Result: "accepted"},
		{Index: 3, Result: "invalid", Reason: "not_object"},
		{Index: 4, Service: "orders", ID: "a4", Result: "invalid", Reason: "missing_field"},
	}
	if diff := cmp.Diff(want, problem.Result.Beats); diff != "" {
		t.Error(diff)
	}
	where := map[string]string{}
	for _, e := range problem.Errors {
		where[e.Location] = e.Reason
		if e.Allowed == "" || e.Message == "" || e.Message == e.Reason {
			t.Errorf("%s does not say what is wrong and what is allowed", e.Location)
		}
	}
	wantWhere := map[string]string{
		"body[1].service": "bad_service", "body[1].port": "bad_port", "body[1].colour": "unknown_field",
		"body[3]": "not_object", "body[4].ip": "missing_field", "body[4].port": "missing_field",
	}
	if diff := cmp.Diff(wantWhere, where); diff != "" {
		t.Error(diff)
	}
	wantMetric(t, metrics, "upstrand_api_beats_total", 2, "result", "accepted")
	wantMetric(t, metrics, "upstrand_api_beats_total", 3, "result", "invalid")
}

// What agents report is believed when the next version is numbered, so not everybody who may post may say it.
func TestAgentsCanNotBePosted(t *testing.T) {
	for _, body := range []string{
		`{"service":"upstrand-proxy","id":"p1","ip":"10.0.0.1","port":8081,"meta":{"topology_version":"2000000","topology_epoch":"200"}}`,
		`{"service":"upstrand-proxy","id":"p1","status":"leaving"}`,
		`{"service":"upstrand-x","id":"p1","port":1}`,
		`{"service":"\u0075pstrand-proxy","id":"p1","port":1}`,
	} {
		p := &topic{}
		w := call(t, beatsAPI(t, p), post("["+body+","+beat("a1")+"]", "application/json"))
		problem := decode[wire.Problem](t, w)
		if w.Code != 422 || problem.Result.Accepted != 1 || problem.Result.Beats[0].Reason != "bad_service" ||
			problem.Errors[0].Location != "body[0].service" || !strings.Contains(problem.Errors[0].Message, "over Kafka only") {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		if diff := cmp.Diff([]string{"orders/a1"}, p.keys()); diff != "" {
			t.Error(diff)
		}
	}
	p := &topic{}
	if w := call(t, beatsAPI(t, p), post(strings.Replace(beat("a1"), "orders", "upstrand", 1), "application/json")); w.Code != 202 {
		t.Errorf("a service that is only named alike: %d %s", w.Code, w.Body)
	}
}

func TestABadLineDoesNotSpoilTheOthers(t *testing.T) {
	p := &topic{}
	w := call(t, beatsAPI(t, p), post(beat("a1")+"\n{\"service\":\n"+beat("a2"), "application/x-ndjson"))
	if problem := decode[wire.Problem](t, w); w.Code != 422 || problem.Result.Accepted != 2 || problem.Result.Beats[1].Reason != "not_json" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff([]string{"orders/a1", "orders/a2"}, p.keys()); diff != "" {
		t.Error(diff)
	}
}

func TestTheSendersAddressIsUsedWhereABeatHasNone(t *testing.T) {
	for _, c := range []struct{ body, from, want string }{
		{`{"service":"s","id":"a","port":80}`, "192.0.2.7:41234", "192.0.2.7"},
		{`{"service":"s","id":"a","port":80}`, "[2001:db8::9]:41234", "2001:db8::9"},
		{`{"service":"s","id":"a","port":80}`, "[::ffff:192.0.2.7]:41234", "192.0.2.7"},
		{`{"service":"s","id":"a","ip":"10.0.0.9","port":80}`, "192.0.2.7:41234", "10.0.0.9"},
		{`{"service":"s","id":"a","status":"leaving"}`, "192.0.2.7:41234", ""},
		{`{"service":"s","id":"a","port":80}`, "@", "missing_field"},
		{`{"service":"s","id":"a"}`, "192.0.2.7:41234", "missing_field"},
		{`{"service":"s","id":"a","ip":"","port":80}`, "192.0.2.7:41234", "bad_ip"},
		{`{"service":"s","id":"a","ip":null,"port":80}`, "192.0.2.7:41234", "bad_type"},
		{`{"service":"s","id":"a","port":80,"port":81}`, "192.0.2.7:41234", "duplicate_field"},
		{`{"service":"s","id":"a","IP":"10.0.0.9","port":80}`, "192.0.2.7:41234", "unknown_field"},
		{`{}`, "192.0.2.7:41234", "missing_field"},
	} {
		p := &topic{}
		r := post(c.body, "application/json")
		r.RemoteAddr = c.from
		r.Header.Set("X-Forwarded-For", "203.0.113.5")
		w := call(t, beatsAPI(t, p), r)
		if len(p.taken) == 0 {
			if reason := decode[wire.Problem](t, w).Result.Beats[0].Reason; reason != c.want {
				t.Errorf("%s from %s: %s, want %s", c.body, c.from, w.Body, c.want)
			}
			continue
		}
		if b, err := heartbeat.Decode(p.taken[0].Value); err != nil || b.IP != c.want {
			t.Errorf("%s from %s is written as %s (%v), want %s", c.body, c.from, p.taken[0].Value, err, c.want)
		}
	}
}

// slowBody never ends.
type slowBody struct{}

func (slowBody) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestBodiesThatCanNotBeTaken(t *testing.T) {
	many := "[" + strings.TrimSuffix(strings.Repeat(beat("a1")+",", MaxBeats+1), ",") + "]"
	for name, c := range map[string]struct {
		body, contentType string
		status            int
		location          string
	}{
		"empty":                 {"", "application/json", 422, "body"},
		"no beats":              {"[]", "application/json", 422, "body"},
		"no lines":              {"\n \n", "application/x-ndjson", 422, "body"},
		"half an array":         {"[" + beat("a1") + ",", "application/json", 422, "body"},
		"an array and more":     {"[" + beat("a1") + "]x", "application/json", 422, "body"},
		"no JSON":               {"service=orders", "application/json", 422, "body[0]"},
		"lines as JSON":         {beat("a1") + "\n" + beat("a2"), "application/json", 422, "body"},
		"JSON as lines":         {"{\n" + beat("a1")[1:], "application/x-ndjson", 422, "body"},
		"an array as lines":     {"[\n" + beat("a1") + "\n]", "application/x-ndjson", 422, "body"},
		"a form":                {beat("a1"), "application/x-www-form-urlencoded", 415, "header.Content-Type"},
		"text":                  {beat("a1"), "text/plain", 415, "header.Content-Type"},
		"no type":               {beat("a1"), "", 415, "header.Content-Type"},
		"an unreadable type":    {beat("a1"), "a/b/c", 415, "header.Content-Type"},
		"too large":             {strings.Repeat(" ", MaxBody) + beat("a1"), "application/json", 413, "body"},
		"too many":              {many, "application/json", 413, "body"},
		"one that is too large": {beat("a1", `,"meta":{"k":"`+strings.Repeat("x", heartbeat.MaxRecord)+`"}`), "application/json", 422, "body[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &topic{}
			w := call(t, beatsAPI(t, p), post(c.body, c.contentType))
			problem := decode[wire.Problem](t, w)
			if w.Code != c.status || len(problem.Errors) == 0 || problem.Errors[0].Location != c.location || problem.Errors[0].Allowed == "" {
				t.Errorf("%d %.500s", w.Code, w.Body)
			}
			if len(p.taken) != 0 {
				t.Errorf("%q was written", p.taken)
			}
		})
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/beats", slowBody{})
	r.Header.Set("Content-Type", "application/json")
	if w := call(t, beatsAPI(t, &topic{}), r); w.Code != 408 {
		t.Errorf("a slow body: %d %s", w.Code, w.Body)
	}
}

// The other type is named, and nothing else is in what is allowed.
func TestBeatsOfTheOtherTypeAreToldWhichItIs(t *testing.T) {
	for _, c := range []struct{ body, as, allowed string }{
		{beat("a1") + "\n" + beat("a2"), "application/json", "application/x-ndjson for a beat a line, or [BEAT, BEAT, …] as application/json"},
		{"{\n" + beat("a1")[1:], "application/x-ndjson", "application/json for a beat or an array of beats"},
	} {
		p := decode[wire.Problem](t, call(t, beatsAPI(t, &topic{}), post(c.body, c.as)))
		if len(p.Errors) != 1 || p.Errors[0].Allowed != c.allowed {
			t.Errorf("%q as %s: %+v", c.body, c.as, p.Errors)
		}
	}
}

func TestAPageOfAnotherSiteCanNotPost(t *testing.T) {
	p := &topic{}
	r := post(beat("a1"), "application/json")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if w := call(t, beatsAPI(t, p), r); w.Code != 403 || len(p.taken) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestKafkaThatIsAwayIs503(t *testing.T) {
	for name, p := range map[string]Publisher{"away": &topic{away: true}, "none": nil} {
		w := call(t, beatsAPI(t, p), post("["+beat("a1")+","+beat("a2")+`,{"service":"orders"}]`, "application/json"))
		problem := decode[wire.Problem](t, w)
		if w.Code != 503 || problem.Result.Failed != 2 || problem.Result.Invalid != 1 || problem.Result.Accepted != 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestWhatKafkaTookOfABatchIsSaid(t *testing.T) {
	p := &topic{fail: func(m Message) error {
		if string(m.Key) == "orders/a2" {
			return errors.New("not enough replicas")
		}
		return nil
	}}
	w := call(t, beatsAPI(t, p), post("["+beat("a1")+","+beat("a2")+","+beat("a3")+"]", "application/json"))
	answer := decode[wire.Problem](t, w).Result
	if w.Code != 503 || answer.Accepted != 2 || answer.Failed != 1 || answer.Beats[1].Result != wire.BeatFailed || answer.Beats[2].Result != wire.BeatAccepted {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String(), "replicas") {
		t.Errorf("the answer tells what is Kafka's: %s", w.Body)
	}
}

func TestTheDocumentedBeatMayLackItsIP(t *testing.T) {
	beat := at(document(t, beatsAPI(t, nil)), "components", "schemas", "Beat")
	if len(asList(at(beat, "else", "required"))) != 1 || at(beat, "dependentRequired", "port") != nil || at(beat, "properties", "port", "maximum") == nil {
		text, _ := json.Marshal(beat)
		t.Errorf("%s", text)
	}
}

func FuzzBeats(f *testing.F) {
	for _, body := range []string{
		beat("a1"), "[" + beat("a1") + "]", beat("a1") + "\n" + beat("a2"), "[", "[null]", "[[]]", `{"port":1}`, `{"port":1`, "[{},1]", "\xff", `{"service":"a","id":"b","port":1,"status":"leaving"}`,
		`{"service":"s","id":"a","port":80,"port":81}`, " {\n\"port\" : 5 } ", "{\"port\":80}{\"ip\":1}",
	} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	from := netip.MustParseAddr("192.0.2.7")
	f.Fuzz(func(t *testing.T, body []byte, ndjson bool) {
		raws, p := split(body, ndjson)
		if p != nil {
			return
		}
		b := decodeBeats(raws, from)
		if len(b.answer.Beats) != len(raws) || len(b.messages)+b.answer.Invalid != len(raws) || len(b.places) != len(b.messages) {
			t.Errorf("%d beats: %d valid, %d invalid", len(raws), len(b.messages), b.answer.Invalid)
		}
		for i, m := range b.messages {
			beat, err := heartbeat.DecodeRecord(m.Key, m.Value)
			if err != nil {
				t.Errorf("%q is written as %q: %v", raws[b.places[i]], m.Value, err)
			}
			if direct, err := heartbeat.Decode(raws[b.places[i]]); err == nil {
				if diff := cmp.Diff(direct, beat); diff != "" {
					t.Errorf("%q changes on the way: %s", raws[b.places[i]], diff)
				}
			} else if beat.IP != from.String() {
				t.Errorf("%q is invalid (%v), and was accepted as %q", raws[b.places[i]], err, m.Value)
			}
		}
	})
}
