package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

type sample struct {
	brokers []string
	lease   time.Duration
	n       int
	on      bool
	word    string
	file    string
	tags    []string
	meta    map[string]string
	listen  string
}

func declare(t *testing.T) (*pflag.FlagSet, *Set, *sample) {
	t.Helper()
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	set, s := NewSet(fs), &sample{}
	g := set.Group("Things")
	g.Addresses(&s.brokers, "kafka-brokers", "127.0.0.1:9092", "where")
	g.Duration(&s.lease, "lease", 3*time.Second, time.Second, time.Minute, "how long")
	g.Int(&s.n, "count", 6, 1, 10, "how many")
	g.Bool(&s.on, "tls", false, "whether")
	g.Choice(&s.word, "format", "auto", "which", "auto", "json")
	g.File(&s.file, "password-file", "secret", nil)
	g.Words(&s.tags, "tag", "tags")
	g.Pairs(&s.meta, "meta", "labels")
	g.Listen(&s.listen, "listen", "127.0.0.1:8080", true, "socket")
	return fs, set, s
}

func load(t *testing.T, fs *pflag.FlagSet, env []string, args ...string) {
	t.Helper()
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if bad := ApplyEnv(fs, env); bad != nil {
		t.Fatal(bad)
	}
}

func TestFlagBeatsEnvironmentBeatsDefault(t *testing.T) {
	cases := map[string]struct {
		env, args []string
		want      time.Duration
	}{
		"default":               {want: 3 * time.Second},
		"environment":           {env: []string{"UPSTRAND_LEASE=5s"}, want: 5 * time.Second},
		"flag over environment": {env: []string{"UPSTRAND_LEASE=5s"}, args: []string{"--lease", "7s"}, want: 7 * time.Second},
		"empty environment":     {env: []string{"UPSTRAND_LEASE="}, want: 3 * time.Second},
		"flag set to default":   {env: []string{"UPSTRAND_LEASE=5s"}, args: []string{"--lease=3s"}, want: 3 * time.Second},
		"flag mends a bad one":  {env: []string{"UPSTRAND_LEASE=soon"}, args: []string{"--lease=9s"}, want: 9 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fs, set, s := declare(t)
			load(t, fs, c.env, c.args...)
			if ps := set.Problems(); ps != nil {
				t.Fatal(ps)
			}
			if s.lease != c.want {
				t.Errorf("lease is %v, want %v", s.lease, c.want)
			}
		})
	}
}

func TestEveryKindTakesItsValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	fs, set, got := declare(t)
	load(t, fs, []string{"UPSTRAND_KAFKA_BROKERS=a:1, [::1]:2", "UPSTRAND_TLS=true", "UPSTRAND_PASSWORD_FILE=" + file},
		"--kafka-brokers", "b:3", "--kafka-brokers", "c:4,d:5", "--count=10", "--format=json", "--tag", "x,y", "--tag=z", "--meta", "k=v,a=b=c", "--listen", "")
	if err := set.Problems().Err(); err != nil {
		t.Fatal(err)
	}
	want := &sample{brokers: []string{"b:3", "c:4", "d:5"}, lease: 3 * time.Second, n: 10, on: true, word: "json", file: file,
		tags: []string{"x", "y", "z"}, meta: map[string]string{"k": "v", "a": "b=c"}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); d != "" {
		t.Error(d)
	}
}

func TestAllBadValuesAreReportedAtOnce(t *testing.T) {
	fs, set, s := declare(t)
	load(t, fs, []string{"UPSTRAND_COUNT=eleven", "UPSTRAND_TLS=maybe"},
		"--lease=1ms", "--format=xml", "--kafka-brokers=nohost", "--meta=x", "--listen=8080")
	text := set.Problems().Error()
	for _, want := range []string{
		`--kafka-brokers (UPSTRAND_KAFKA_BROKERS) is "nohost": allowed: host:port`,
		`--lease (UPSTRAND_LEASE) is "1ms": allowed: a duration from 1s to 1m, such as 3s`,
		`--count (UPSTRAND_COUNT) is "eleven": allowed: a whole number from 1 to 10`,
		`--tls (UPSTRAND_TLS) is "maybe": allowed: true, false`,
		`--format (UPSTRAND_FORMAT) is "xml": allowed: auto, json`,
		`--meta (UPSTRAND_META) is "x": allowed: key=value`,
		`--listen (UPSTRAND_LISTEN) is "8080": allowed: host:port or :port`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	if n := len(set.Problems()); n != 7 {
		t.Errorf("%d problems, want 7:\n%s", n, text)
	}
	if s.n != 6 || s.lease != 3*time.Second {
		t.Errorf("a bad value changed the setting: %+v", s)
	}
}

func TestFilesAreCheckedAfterTheValues(t *testing.T) {
	fs, set, _ := declare(t)
	load(t, fs, nil, "--password-file", "/nowhere/pw")
	ps := set.Problems()
	if len(ps) != 1 || ps[0].Flag != "password-file" || !strings.Contains(ps[0].Allowed, "no such file") {
		t.Errorf("got %v", ps)
	}
	fs, set, _ = declare(t)
	load(t, fs, nil, "--password-file", t.TempDir())
	if ps := set.Problems(); len(ps) != 1 || !strings.Contains(ps[0].Allowed, "folder") {
		t.Errorf("got %v", ps)
	}
}

func TestUnknownEnvironmentSuggestsTheNearest(t *testing.T) {
	known := map[string]bool{"UPSTRAND_KAFKA_BROKERS": true, "UPSTRAND_LEASE": true, "UPSTRAND_POLL": true}
	got := UnknownEnv([]string{
		"UPSTRAND_KAFKA_BROKER=x", "UPSTRAND_LEESE=1s", "UPSTRAND_SOMETHING_ELSE=1", "UPSTRAND_POLL=1s", "HOME=/root",
		"UPSTRAND_REGISTRY_SERVICE_HOST=10.0.0.1", "UPSTRAND_REGISTRY_PORT_8090_TCP_ADDR=10.0.0.1", "UPSTRAND_TEST_KAFKA=x", "UPSTRAND_KAFKA_JARS=x",
	}, known)
	want := []Unknown{
		{"UPSTRAND_KAFKA_BROKER", "UPSTRAND_KAFKA_BROKERS"},
		{"UPSTRAND_LEESE", "UPSTRAND_LEASE"},
		{"UPSTRAND_SOMETHING_ELSE", ""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFlagsWithoutEnvironment(t *testing.T) {
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	zone := fs.String("zone", "", "filter")
	fs.Int("limit", 5, "how many")
	fs.Lookup("zone").Annotations = map[string][]string{NoEnv: nil}
	if bad := ApplyEnv(fs, []string{"UPSTRAND_ZONE=a", "UPSTRAND_LIMIT=many"}); len(bad) != 1 || bad[0].Flag != "limit" {
		t.Errorf("problems %v", bad)
	}
	if *zone != "" {
		t.Errorf("zone %q", *zone)
	}
}

func TestHelpShowsGroupsDefaultsAndEnvironment(t *testing.T) {
	fs, _, _ := declare(t)
	fs.Int("limit", 5, "most `rows` shown")
	var b strings.Builder
	PrintFlags(&b, fs)
	for _, want := range []string{
		"\nThings:\n  --kafka-brokers HOST:PORT,…\n        where (default 127.0.0.1:9092, UPSTRAND_KAFKA_BROKERS)\n",
		"  --lease DURATION\n        how long (default 3s, UPSTRAND_LEASE)\n",
		"  --tls\n        whether (UPSTRAND_TLS)\n",
		"\nFlags:\n  --limit ROWS\n        most rows shown (default 5, UPSTRAND_LIMIT)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("missing %q in\n%s", want, b.String())
		}
	}
	for line := range strings.SplitSeq(wrap(strings.Repeat("word ", 100), "   "), "\n") {
		if len(line) > width {
			t.Errorf("line of %d columns", len(line))
		}
	}
}

func TestChecksRunBesideBadValuesAndNameAFlagOnce(t *testing.T) {
	fs, set, s := declare(t)
	set.Check(func() (ps Problems) {
		if s.n == 6 {
			ps = append(ps, Problem{Flag: "count", Allowed: "needed"})
		}
		return append(ps, Problem{Flag: "listen", Allowed: "taken"}, Problem{Allowed: "one"}, Problem{Allowed: "two"})
	})
	load(t, fs, nil, "--count=eleven", "--password-file=/nowhere/pw")
	text := set.Problems().Error()
	for _, want := range []string{`is "eleven"`, "no such file", "taken", "one", "two"} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "needed\n") {
		t.Errorf("what follows from a bad value is reported beside it:\n%s", text)
	}
}

func TestFoldersMustTakeFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", dir: "", filepath.Join(dir, "a", "b"): "", file: "is a file", filepath.Join(file, "x"): "not a directory", "/proc/x": "/proc",
	} {
		ps := dirProblems("data", path)
		if (want == "") != (len(ps) == 0) || want != "" && !strings.Contains(ps.Error(), want) {
			t.Errorf("%s: %v, want %q", path, ps, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestAnAddressBecomesAURL(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:8090": "http://127.0.0.1:8090", "[::1]:8090/x": "http://[::1]:8090/x", "registry:80/": "http://registry:80",
		"http://h:1/": "http://h:1/", "nonsense": "nonsense", "h:": "h:", "": "", "https://h": "https://h",
	} {
		if got := WithScheme(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A value that its problem begins with, such as a file's name with the line, is said once.
func TestAProblemSaysItsValueOnce(t *testing.T) {
	for want, p := range map[string]Problem{
		"--conf (UPSTRAND_CONF): p.conf:5: bad":        {"conf", "p.conf", "p.conf:5: bad"},
		`--conf (UPSTRAND_CONF) is "p.conf": 2 faults`: {"conf", "p.conf", "2 faults"},
		"--conf (UPSTRAND_CONF): one is needed":        {"conf", "", "one is needed"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
