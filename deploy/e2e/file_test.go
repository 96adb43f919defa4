package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// A file in nginx's syntax beside the published topology: its locations lead to what is published, it can be read again,
// and a broken one leaves the old one in force.
func TestAFileNamesPublishedUpstreams(t *testing.T) {
	t.Parallel()
	w := start(t, shape{})
	first := w.join(rig.Spec{Service: "shop", ID: "shop-1"})
	text := func(location string) func(string) string {
		return func(listen string) string {
			return "server { listen " + listen + "; location " + location + " { proxy_pass http://shop/; } }\n"
		}
	}
	p, file, err := w.FileProxy(w.ctx, "file-proxy", text("/api/"))
	w.must(p, err)
	w.ok(p.AwaitReady(w.ctx, 30*time.Second))
	w.until(20*time.Second, "the file's location leads to the instance", func() error {
		id, err := w.get(p, "/api/x")
		if err == nil && id != first.Name {
			err = fmt.Errorf("answered by %s", id)
		}
		return err
	})
	if _, err := w.get(p, "/shop"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a published route beside a file: %v, want 404", err)
	}

	w.ok(os.WriteFile(file, []byte("server { lissten 80; }"), 0o644))
	w.ok(p.Hangup())
	w.until(10*time.Second, "the page tells of the fault", func() error {
		state, err := fileState(p)
		if err == nil && (state.Current || len(state.Faults) != 1 || !strings.Contains(state.Faults[0], file+":1: lissten: unknown directive")) {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
	if _, err := w.get(p, "/api/x"); err != nil {
		t.Errorf("the old file: %v", err)
	}
	if v, err := p.Metric(w.ctx, "upstrand_proxy_file_current"); err != nil || v != 0 {
		t.Errorf("upstrand_proxy_file_current is %v, %v", v, err)
	}

	w.ok(os.WriteFile(file, []byte(text("/v2/")(p.Traffic)), 0o644))
	w.ok(p.Hangup())
	w.until(10*time.Second, "the new file is in force", func() error { _, err := w.get(p, "/v2/x"); return err })
	w.ok(p.Term(10 * time.Second))
}

type fileOnPage struct {
	Current bool
	Faults  []string
}

func fileState(p *rig.Role) (s fileOnPage, err error) {
	resp, err := http.Get("http://" + p.Admin + "/debug/topology")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	var page struct{ File *fileOnPage }
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err == nil && page.File == nil {
		err = errors.New("the page knows no file")
	}
	if err != nil {
		return s, err
	}
	return *page.File, nil
}
