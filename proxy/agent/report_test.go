package agent

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/proxy"
)

func TestTheBlacklistIsReported(t *testing.T) {
	var list []proxy.Blacklisted
	a, err := New(Config{Brokers: []string{"127.0.0.1:1"}, Topic: "conf", Applier: &sink{}, Blacklisted: func() []proxy.Blacklisted { return list }})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := a.Report()["blacklisted"]; ok {
		t.Errorf("nothing is blacklisted: %q", text)
	}
	list = []proxy.Blacklisted{{Upstrand: `a"b`, Upstream: "x@a", Until: 1764500000}, {Upstrand: "s", Upstream: "y", Until: 1764400000}}
	if got, want := a.Report()["blacklisted"], `[["a\"b","x@a",1764500000],["s","y",1764400000]]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := range 1000 {
		list = append(list, proxy.Blacklisted{Upstrand: "many", Upstream: fmt.Sprint(i), Until: 1764400000})
	}
	text := a.Report()["blacklisted"]
	var rows [][]any
	if err := json.Unmarshal([]byte(text), &rows); err != nil || len(text) > heartbeat.MaxMetaValue || len(rows) < 30 || rows[0][1] != "x@a" {
		t.Errorf("%d bytes, %d rows, %v: %s", len(text), len(rows), err, text)
	}
}
