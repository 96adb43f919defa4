package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// vector is what these tests need of a recorded case; deploy/conformance says what the rest means.
type vector struct {
	Name       string            `json:"name"`
	HTTPConf   string            `json:"http_conf"`
	ServerConf string            `json:"server_conf"`
	Addresses  map[string]string `json:"server_addresses"`
	Defect     string            `json:"defect"`
	ConfigOK   *bool             `json:"config_ok"`
	Messages   [][2]string       `json:"messages"`
	Steps      []vectorStep      `json:"steps"`
}

func vectors(t *testing.T, theme string) []vector {
	t.Helper()
	dir := cmp.Or(os.Getenv("UPSTRAND_VECTORS"), "../../deploy/conformance/testdata")
	files, err := filepath.Glob(filepath.Join(dir, theme+"_*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("theme %s in %s: %v %v", theme, dir, files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var out []vector
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

var symbol = regexp.MustCompile(`\bserver\s+(s\d+)\b`)

// conf is the file that the case was recorded with, but for the log's format.
func (v vector) conf() string {
	address := func(text string) string {
		return symbol.ReplaceAllStringFunc(text, func(m string) string {
			name := symbol.FindStringSubmatch(m)[1]
			return "server " + cmp.Or(v.Addresses[name], name)
		})
	}
	return fmt.Sprintf(`http {
 log_format j escape=json '{"rid":"$http_x_rid","addr":"$upstream_addr"}';
 access_log off;
 set_real_ip_from 127.0.0.0/8; real_ip_header X-Client-IP;
 proxy_connect_timeout 500ms; proxy_read_timeout 500ms; proxy_http_version 1.0; client_max_body_size 10m;
%s
 server {
  listen 127.0.0.1:19000;
  access_log access.log j;
%s
 }
}
`, address(v.HTTPConf), address(v.ServerConf))
}

func (v vector) check() report {
	conf := []byte(v.conf())
	return check("test.conf", Options{ReadFile: func(string) ([]byte, error) { return conf, nil }})
}

// TestConfigVectors is theme 09: nginx and we accept the same, but for what nginx does not have.
func TestConfigVectors(t *testing.T) {
	for _, v := range vectors(t, "09") {
		t.Run(v.Name, func(t *testing.T) {
			got := v.check()
			want := *v.ConfigOK
			if strings.HasPrefix(v.Defect, "no fault: slow_start") {
				want = true
			}
			if ok := len(got.faults) == 0; ok != want {
				t.Errorf("accepted: %t, want %t: %v", ok, want, got.faults)
			}
			for _, f := range got.faults {
				if f.Line == 0 || f.File == "" || f.Name == "" {
					t.Errorf("a fault without a place: %v", f)
				}
			}
			checkWarnings(t, v, got)
		})
	}
}

// checkWarnings wants a notice where nginx warns.
func checkWarnings(t *testing.T, v vector, got report) {
	t.Helper()
	for _, m := range v.Messages {
		if m[0] != "warn" {
			continue
		}
		found := false
		for _, n := range got.notices {
			found = found || strings.Contains(n.Reason, m[1])
		}
		if !found {
			t.Errorf("no notice that says %q: %v", m[1], got.notices)
		}
	}
}

// TestVectorsLoad wants the configurations of all other themes to load as they stand.
func TestVectorsLoad(t *testing.T) {
	for _, theme := range []string{"01", "02", "03", "04", "05", "06", "07", "08", "10", "11", "12", "13", "14"} {
		for _, v := range vectors(t, theme) {
			if v.ConfigOK != nil {
				continue
			}
			if got := v.check(); len(got.faults) > 0 {
				t.Errorf("%s %s: %v", theme, v.Name, got.faults)
			}
		}
	}
}
