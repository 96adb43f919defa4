package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/upstrand/upstrand/cmd/internal/cli"
	"github.com/upstrand/upstrand/cmd/internal/helptest"
)

const secretText = "correct-horse-battery"

// buffer can be written and read at the same time.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// run carries out one command in this process until ctx ends.
func run(ctx context.Context, env []string, args ...string) (code int, out, err string) {
	var stdout, stderr buffer
	code = program(env, &stdout, &stderr).Run(ctx, args)
	return code, stdout.String(), stderr.String()
}

func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secretText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestHelp(t *testing.T) {
	helptest.Compare(t, func(w *bytes.Buffer) *cli.Program { return program(nil, w, w) })
}

func TestEveryRoleExplainsItself(t *testing.T) {
	for _, name := range []string{"migrate", "listener", "confgen", "registry", "proxy", "beat", "version"} {
		cmd, _, err := program(nil, nil, nil).Root().Find([]string{name})
		if err != nil || cmd.Name() != name {
			t.Fatalf("no command %s: %v", name, err)
		}
		if name != "version" && len(strings.Fields(cmd.Long)) < 40 {
			t.Errorf("%s: the text says too little: %q", name, cmd.Long)
		}
		if !strings.Contains(cmd.Example, "upstrand "+name) {
			t.Errorf("%s: no example", name)
		}
	}
}

func TestCheckConfigOfEveryRole(t *testing.T) {
	secret := secretFile(t)
	kafka := []string{"UPSTRAND_KAFKA_BROKERS=k:9092", "UPSTRAND_KAFKA_SASL_MECHANISM=plain", "UPSTRAND_KAFKA_SASL_USER=u", "UPSTRAND_KAFKA_SASL_PASSWORD_FILE=" + secret,
		"UPSTRAND_MYSQL_PASSWORD_FILE=" + secret}
	for _, args := range [][]string{{"migrate"}, {"listener"}, {"confgen"}, {"registry"}, {"proxy"}, {"beat", "--service=orders", "--port=8080", "--url=/orders/"}} {
		code, out, errs := run(t.Context(), kafka, append(args, "--check-config")...)
		if code != 0 || !strings.Contains(out, "upstrand "+args[0]+": the settings can be used") || errs != "" {
			t.Errorf("%v: exit code %d\n%s\n%s", args, code, out, errs)
		}
		code, out, errs = run(t.Context(), []string{"UPSTRAND_KAFKA_BROKERS=k"}, append(args, "--kafka-sasl-mechanism=magic", "--log-level=loud", "--check-config")...)
		for _, want := range []string{`--kafka-brokers (UPSTRAND_KAFKA_BROKERS) is "k"`, `--kafka-sasl-mechanism`, `"magic"`, "scram-sha-256", `"loud"`} {
			if code != 1 || !strings.Contains(errs, want) {
				t.Errorf("%v: exit code %d, want %q in\n%s", args, code, want, errs)
			}
		}
		if strings.Contains(out+errs, secretText) {
			t.Errorf("%v shows the password", args)
		}
	}
}

func TestBeatSaysAllThatIsWrong(t *testing.T) {
	code, _, errs := run(t.Context(), nil, "beat", "--check-config")
	if code != 1 || !strings.Contains(errs, "--service") || !strings.Contains(errs, "--port") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	code, _, errs = run(t.Context(), nil, "beat", "--service=Orders!", "--port=80", "--url=orders", "--check-config")
	if code != 1 || !strings.Contains(errs, "service") || !strings.Contains(errs, "url") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	code, _, errs = run(t.Context(), nil, "beat", "--service=orders", "--port=80", "--check=ftp://x", "--check-config")
	if code != 1 || !strings.Contains(errs, "tcp://host:port") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// Each of these was accepted once, and could not work; or was reported under another flag, or twice.
func TestCheckConfigFindsWhatCantWork(t *testing.T) {
	file := secretFile(t)
	beat := []string{"beat", "--port=80", "--service"}
	for name, c := range map[string]struct {
		args []string
		want []string // each of them once, and as many problems
	}{
		"state folder":      {[]string{"proxy", "--state-dir=" + file}, []string{"--state-dir (UPSTRAND_STATE_DIR)"}},
		"peer certificate":  {[]string{"proxy", "--peer-tls-cert=/nope", "--peer-tls-key=" + file}, []string{"--peer-tls-cert (UPSTRAND_PEER_TLS_CERT)"}},
		"password":          {[]string{"listener", "--mysql-password-file=/nope"}, []string{"--mysql-password-file ("}},
		"authorities":       {[]string{"listener", "--mysql-tls=true", "--mysql-tls-ca=/nope"}, []string{"--mysql-tls-ca ("}},
		"no authorities":    {[]string{"listener", "--kafka-tls", "--kafka-tls-ca=" + file}, []string{"--kafka-tls-ca ("}},
		"no replicas":       {[]string{"migrate", "--kafka-replication-factor=0"}, []string{"--kafka-replication-factor ("}},
		"two stages in one": {[]string{"listener", "--poll-is=1", "--lease=x"}, nil},
		"both kinds":        {[]string{"listener", "--pulse-interval=x", "--mysql-password-file=/nope"}, []string{"--pulse-interval (", "--mysql-password-file ("}},
		"reserved name":     {append(beat, "upstrand-proxy"), []string{"--service (UPSTRAND_SERVICE)"}},
		"names of beats": {append(beat, "Orders", "--url=x", "--tag=a b", "--zone=a b", "--id=a b", "--stale-after=1ms"),
			[]string{"--service (", "--url (", "--tag (", "--zone (", "--id (", "--stale-after ("}},
		"missing and bad":   {[]string{"beat", "--url=x", "--check=ftp://x"}, []string{"--service (", "--port (", "--url (", "--check ("}},
		"no such command":   {append(beat, "orders", "--", "/no/such/cmd"), []string{"the command after -- can't be run"}},
		"word without dash": {append(beat, "orders", "foo"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{c.args[0], "--check-config"}, c.args[1:]...)
			code, out, errs := run(t.Context(), nil, args...)
			if code != 1 {
				t.Fatalf("exit code %d\n%s%s", code, out, errs)
			}
			for _, want := range c.want {
				if strings.Count(errs, "\n  "+want) != 1 {
					t.Errorf("want %q once in\n%s", want, errs)
				}
			}
			if n := strings.Count(errs, "\n  "); n != len(c.want) {
				t.Errorf("%d problems, want %d:\n%s", n, len(c.want), errs)
			}
		})
	}
}

func TestOperatorsAreWarnedOfUnknownVariables(t *testing.T) {
	code, _, errs := run(t.Context(), []string{"UPSTRAND_REGISTRI=x"}, "service", "ls", "--registry=127.0.0.1:1")
	if code != 1 || !strings.Contains(errs, "did you mean UPSTRAND_REGISTRY?") || !strings.Contains(errs, "refused") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if _, _, errs := run(t.Context(), []string{"UPSTRAND_REGISTRI=x"}, "version"); errs != "" {
		t.Errorf("a command that reads no variables warns:\n%s", errs)
	}
}

func TestSlipsOfThePen(t *testing.T) {
	code, _, errs := run(t.Context(), nil, "listener", "--kafka-broker", "k:9092")
	if code != 1 || !strings.Contains(errs, "did you mean --kafka-brokers?") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	code, _, errs = run(t.Context(), nil, "listen")
	if code != 1 || !strings.Contains(errs, "listener") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	code, out, _ := run(t.Context(), []string{"UPSTRAND_KAFKA_BROKER=k:1", "UPSTRAND_ZONE=a", "UPSTRAND_ADMIN=edge-1:8081"}, "listener", "--check-config")
	if code != 0 || !strings.Contains(out, "UPSTRAND_KAFKA_BROKER is not a setting of ours: did you mean UPSTRAND_KAFKA_BROKERS?") || strings.Contains(out, "UPSTRAND_ZONE") ||
		strings.Contains(out, "UPSTRAND_ADMIN") {
		t.Errorf("exit code %d: want a warning for the slip and none for another role's setting\n%s", code, out)
	}
}

// Every role must come up, say what it waits for, and end, with nothing there that it needs; and no password may show,
// whatever it logs meanwhile.
func TestRolesWithoutKafkaAndDatabase(t *testing.T) {
	secret := secretFile(t)
	common := []string{"--kafka-brokers=127.0.0.1:1", "--kafka-sasl-mechanism=scram-sha-256", "--kafka-sasl-user=u", "--kafka-sasl-password-file=" + secret,
		"--log-level=debug", "--log-format=json"}
	mysql := []string{"--mysql-addr=127.0.0.1:1", "--mysql-password-file=" + secret}
	cases := map[string]struct {
		args []string
		says string
	}{
		"listener": {append(mysql, "--admin-listen=127.0.0.1:0"), "waiting"},
		"confgen":  {append(mysql, "--admin-listen=127.0.0.1:0"), "waiting"},
		"registry": {append(mysql, "--listen=127.0.0.1:0"), "the database is away"},
		"proxy":    {[]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--state-dir=" + t.TempDir()}, `"for":"proxy"`},
		"beat":     {[]string{"--service=orders", "--port=1", "--check=none", "--admin-listen=127.0.0.1:0"}, `"for":"admin"`},
		"migrate":  {append(mysql, "--wait=1s"), "waiting"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var stdout, stderr buffer
			done := make(chan int, 1)
			go func() {
				done <- program([]string{"UPSTRAND_LEESE=5s"}, &stdout, &stderr).Run(ctx, append(append([]string{name}, common...), c.args...))
			}()
			for !strings.Contains(stderr.String(), c.says) && ctx.Err() == nil && len(done) == 0 {
				time.Sleep(10 * time.Millisecond) // real sockets: there is no clock to move
			}
			if !strings.Contains(stderr.String(), c.says) {
				t.Fatalf("never said %q:\n%s", c.says, stderr.String())
			}
			if !strings.Contains(stderr.String(), "UPSTRAND_LEESE is not a setting of ours: did you mean UPSTRAND_LEASE?") {
				t.Errorf("no warning of the unknown variable:\n%s", stderr.String())
			}
			switch name {
			case "listener", "confgen":
				awaitPage(ctx, t, adminOf(t, stderr.String())+"/readyz", name+": is starting: waits for the database: reach the database: ")
			case "beat":
				awaitPage(ctx, t, adminOf(t, stderr.String())+"/metrics", "upstrand_beat_sent_total 0")
			}
			if strings.Contains(stderr.String(), "not started") {
				t.Errorf("tells of an end that is none:\n%s", stderr.String())
			}
			if name != "migrate" {
				cancel()
			}
			select {
			case code := <-done:
				if want := map[bool]int{true: 1, false: 0}[name == "migrate"]; code != want {
					t.Errorf("exit code %d, want %d\n%s", code, want, stderr.String())
				}
			case <-time.After(30 * time.Second):
				t.Fatal("does not end")
			}
			if all := stdout.String() + stderr.String(); strings.Contains(all, secretText) {
				t.Errorf("the password shows:\n%s", all)
			}
		})
	}
}

// adminOf is the URL of the admin server, from the log.
func adminOf(t *testing.T, log string) string {
	t.Helper()
	m := regexp.MustCompile(`"addr":"([^"]+)","for":"admin"`).FindStringSubmatch(log)
	if m == nil {
		t.Fatalf("no admin address in\n%s", log)
	}
	return "http://" + m[1]
}

// awaitPage asks until the page holds want.
func awaitPage(ctx context.Context, t *testing.T, url, want string) {
	t.Helper()
	page := ""
	for !strings.Contains(page, want) {
		if ctx.Err() != nil {
			t.Fatalf("%s never holds %q:\n%s", url, want, page)
		}
		time.Sleep(10 * time.Millisecond) // real sockets: there is no clock to move
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		page = string(body)
	}
}

func TestBeatHasTheChildsExitCode(t *testing.T) {
	code, _, errs := run(t.Context(), nil, "beat", "--service=orders", "--port=1", "--check=none", "--kafka-brokers=127.0.0.1:1",
		"--leave-wait=0s", "--", "/bin/sh", "-c", "exit 7")
	if code != 7 {
		t.Errorf("exit code %d, want the child's 7\n%s", code, errs)
	}
}

func TestReadyIsAHealthCheck(t *testing.T) {
	answer := http.StatusOK
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			answer = http.StatusTeapot
		}
		w.WriteHeader(answer)
		fmt.Fprintln(w, "proxy: no topology yet")
	}))
	defer role.Close()
	if code, out, errs := run(t.Context(), nil, "ready", role.Listener.Addr().String()); code != 0 || !strings.Contains(out, "no topology yet") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	for _, address := range []string{role.URL, role.URL + "/", role.Listener.Addr().String() + "/readyz"} {
		if code, _, errs := run(t.Context(), nil, "ready", address); code != 0 {
			t.Errorf("%s: exit code %d\n%s", address, code, errs)
		}
	}
	if code, _, errs := run(t.Context(), nil, "ready", "nonsense"); code != 1 || !strings.Contains(errs, "want host:port") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	answer = http.StatusServiceUnavailable
	if code, _, errs := run(t.Context(), nil, "ready", role.URL+"/readyz"); code != 1 || !strings.Contains(errs, "no topology yet") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	role.Close()
	if code, _, errs := run(t.Context(), nil, "ready", role.URL+"/readyz"); code != 1 || errs == "" {
		t.Errorf("nobody there: exit code %d\n%s", code, errs)
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := run(t.Context(), nil, "version")
	if code != 0 || !strings.HasPrefix(out, "upstrand ") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
