package heartbeat

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is wrong, what was found and what is allowed are told apart: allowed is never a sentence about the mistake.
func TestProblemsTellWhatIsWrongFromWhatIsAllowed(t *testing.T) {
	const address = `"ip":"10.0.0.7","port":80`
	for _, c := range []struct{ record, field, message, value, allowed string }{
		{`{bad`, "", "is not JSON from byte 1 on", `"bad"`, "one JSON object, in UTF-8"},
		{`{"service":`, "", "is not JSON: it ends too early, after 11 bytes", "", "one JSON object, in UTF-8"},
		{`{}{}`, "", "is not JSON from byte 2 on", `"{}"`, "one JSON object, in UTF-8"},
		{`[]`, "", "is no object", "[]", "one JSON object, in UTF-8"},
		{``, "", "is empty", "", "one JSON object, in UTF-8"},
		{"{\"service\":\"\xff\"}", "", "is not UTF-8 text", "", "one JSON object, in UTF-8"},
		{strings.Repeat("x", MaxRecord+1), "", "is too large", "65537 bytes", "at most 65536 bytes"},
		{`{"service":"o","id":"1","id":"2",` + address + `}`, "id", "is given more than once", "", "once"},
		{`{"service":"o","id":"1",` + address + `,"meta":{"a":"1","a":"2"}}`, "meta.a", "is given more than once", "", "once"},
		{`{"service":"o","id":"1","ip":"10.0.0.7"}`, "port", "is required", "", "1 to 65535"},
		{`{"service":"o","id":"1","seq":1,` + address + `}`, "incarnation", "is required beside seq", "", "1 to 9007199254740991"},
		{`{"service":"o","id":"1",` + address + `,"wieght":3}`, "wieght", "is no field (did you mean weight?)", "3", "weight"},
		{`{"service":"o","id":"1",` + address + `,"Zone":"a"}`, "Zone", "is no field (did you mean zone?)", `"a"`, "zone"},
		{`{"service":"o","id":"1",` + address + `,"max_con":3}`, "max_con", "is no field (did you mean max_conns?)", "3", "max_conns"},
		{`{"service":"o","id":"1",` + address + `,"load":{"rpm":3}}`, "load.rpm", "is no field (did you mean load.rps?)", "3", "load.rps"},
		{`{"service":"o","id":"1",` + address + `,"load":{"queue":3}}`, "load.queue", "is no field that this version knows (update listeners before senders)", "3", "in_flight, rps, latency_ms"},
		{`{"service":"o","id":"1",` + address + `,"colour":3}`, "colour", "is no field that this version knows (update listeners before senders)", "3", allowedFields},
		{`{"service":"o","id":"1",` + address + `,"weight":0}`, "weight", "is out of range", "0", "1 to 65535"},
		{`{"service":"o","id":"1",` + address + `,"weight":"3"}`, "weight", "has the wrong type", `"3"`, "an integer"},
		{`{"service":"o","id":"1",` + address + `,"interval":"4m"}`, "interval", "is too long without a stale_after", "4m", "at most 3m20s, or a stale_after of at least 1.5 intervals (6m) beside it"},
		{`{"service":"o","id":"1",` + address + `,"meta":{"a b":""}}`, "meta", "has a key that is not allowed", `"a b"`, "keys of [A-Za-z0-9._/-]{1,64}"},
	} {
		_, err := Decode([]byte(c.record))
		var invalid *InvalidError
		if !errors.As(err, &invalid) || len(invalid.Problems) != 1 {
			t.Errorf("%.80s: %v", c.record, err)
			continue
		}
		want := Problem{Field: c.field, Reason: invalid.Reason, Message: c.message, Value: c.value, Allowed: c.allowed}
		if diff := cmp.Diff(want, invalid.Problems[0]); diff != "" {
			t.Errorf("%.80s (-want +got):\n%s", c.record, diff)
		}
	}
}

func TestTheListOfFieldsIsWrittenOnce(t *testing.T) {
	_, err := Decode([]byte(`{"service":"o","id":"1","ip":"::1","port":80,"colour":1,"flavour":2}`))
	if n := strings.Count(err.Error(), "incarnation"); n != 1 || !strings.Contains(err.Error(), "flavour: is no field") {
		t.Errorf("%d times: %v", n, err)
	}
}
