package agent

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/confgen/topology"
)

// A proxy that never had a topology keeps none, and says so.
func TestWithoutATopologyNothingIsKept(t *testing.T) {
	var log bytes.Buffer
	a, err := New(Config{Brokers: []string{"127.0.0.1:1"}, Topic: "conf", Applier: &sink{}, Logger: zerolog.New(&log)})
	if err != nil {
		t.Fatal(err)
	}
	a.note(errors.New("no broker"))
	if strings.Contains(log.String(), "last good") || !strings.Contains(log.String(), "has no topology yet") {
		t.Errorf("%s", &log)
	}
	log.Reset()
	a.applied = &topology.Topology{}
	a.note(errors.New("the broker left"))
	if !strings.Contains(log.String(), "keeps the last good topology") {
		t.Errorf("%s", &log)
	}
}
