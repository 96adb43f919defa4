package proxy

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/confgen/dialect"
)

// A relative log is written beside the file that names it, not where the proxy was started.
func TestARelativeLogIsBesideItsFile(t *testing.T) {
	w := newWorld(t, nil)
	path := filepath.Join(t.TempDir(), "sub", "nginx.conf")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "log_format f $uri;\nserver { listen 8080; access_log access.log f; location / { return 204; } }\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	doc, faults := dialect.Read(path, dialect.Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if err := w.p.Load(&File{Name: path, Config: doc.Config, Site: doc.Site, Fault: doc.Fault}); err != nil {
		t.Fatal(err)
	}
	if got := w.get("/here").status; got != 204 {
		t.Fatal(got)
	}
	log := filepath.Join(filepath.Dir(path), "access.log")
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) { // the line is written when the answer has gone out
		if got, err := os.ReadFile(log); err == nil && strings.Contains(string(got), "/here") {
			return
		}
		w.get("/again")
	}
	t.Error("nothing is written to", log)
}

// A proxy to which nothing is published has no version to show.
func TestThePageOfAFileAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.mustLoad(false, "server { listen 8080; location / { return 204; } }")
	rec := httptest.NewRecorder()
	w.p.Admin(nil, func() *FileState { return &FileState{Name: "nginx.conf"} }).ServeHTTP(rec, httptest.NewRequest("GET", "/debug/topology", nil))
	var page map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"version", "epoch", "digest", "committed_at", "age_ms"} {
		if _, there := page[key]; there {
			t.Errorf("%s is shown: %s", key, rec.Body)
		}
	}
	if page["file"] == nil || page["built_at"] == nil {
		t.Errorf("%s", rec.Body)
	}
}
