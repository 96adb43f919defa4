package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// What can't beat by itself: a service of any language behind the sidecar, which checks it, beats for it and says goodbye for it; and
// one that posts its beats to the registry. Both are served, and the operators' commands show them.
func TestSidecarAndPostedBeats(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	b := w.backend("side/s1", "")
	ip, port := split(b.Addr)
	sidecar := &rig.Proc{Name: "sidecar", Path: w.Program(), Log: filepath.Join(w.Dir, "sidecar.log"),
		Args: []string{"beat", "--log-format", "json", "--kafka-brokers", w.Kafka.Addr, "--service", "side", "--id", "s1", "--ip", ip, "--port", fmt.Sprint(port),
			"--url", "/side/", "--interval", times.Beat.String(), "--check", "http://" + b.Addr + "/healthz", "--check-interval", "200ms", "--rise", "1", "--fall", "2"}}
	w.ok(sidecar.Start())
	t.Cleanup(sidecar.Close)
	w.topology(10*time.Second, "the sidecar's service is published", has(1, "side"))
	w.served(5*time.Second, "/side/x")

	posted := w.backend("posted/p1", "")
	_, postedPort := split(posted.Addr)
	value, err := json.Marshal(map[string]any{"service": "posted", "id": "p1", "ip": ip, "port": postedPort, "url": "/posted", "interval": "1m"})
	w.ok(err)
	api, err := w.API()
	w.ok(err)
	answer, err := api.SendBeats(w.ctx, value)
	w.ok(err)
	if answer.Accepted != 1 {
		t.Fatalf("the posted beat was not accepted: %+v", answer)
	}
	w.topology(10*time.Second, "the posted service is published", has(1, "posted"))
	w.served(5*time.Second, "/posted")

	out, err := exec.CommandContext(w.ctx, w.Program(), "instance", "ls", "--registry", "http://"+w.registry.Traffic, "-o", "json").CombinedOutput()
	if err != nil {
		t.Fatalf("instance ls: %v\n%s", err, out)
	}
	for _, id := range []string{`"s1"`, `"p1"`} {
		if !bytes.Contains(out, []byte(id)) {
			t.Errorf("instance ls does not show %s:\n%s", id, out)
		}
	}
	w.ok(sidecar.Term(15 * time.Second))
	w.topology(2*time.Second, "the sidecar has said goodbye", has(0, "side"))
}
