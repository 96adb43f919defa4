package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/upstrand/upstrand/cmd/internal/cli"
	"github.com/upstrand/upstrand/cmd/internal/helptest"
	"github.com/upstrand/upstrand/heartbeat"
)

// binary is upstrand-dev, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "upstrand-dev-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "upstrand-dev")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestHelp(t *testing.T) {
	helptest.Compare(t, func(w *bytes.Buffer) *cli.Program { return program(&litter{}, nil, w, w) })
}

// dev is upstrand-dev as a process.
type dev struct {
	t    *testing.T
	cmd  *exec.Cmd
	tmp  string // its TMPDIR
	done chan struct{}

	mu   sync.Mutex
	out  bytes.Buffer
	errs bytes.Buffer
}

// locked guards one of the two buffers.
type locked struct {
	d *dev
	b *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.b.Write(p)
}

func (d *dev) text() (out, errs string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out.String(), d.errs.String()
}

var freePorts = []string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--registry-listen=127.0.0.1:0", "--broker-listen=127.0.0.1:0", "--demo-listen=127.0.0.1:0"}

// launch starts the program without waiting for anything.
func launch(t *testing.T, args ...string) *dev {
	t.Helper()
	d := &dev{t: t, tmp: t.TempDir(), done: make(chan struct{})}
	d.cmd = exec.Command(binary, args...)
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.tmp)
	d.cmd.Stdout, d.cmd.Stderr = locked{d, &d.out}, locked{d, &d.errs}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.done)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.done
	})
	return d
}

// The issue allows 10 s from the end of the build to the text. The rest is for machines that run other tests as well.
const untilText = 20 * time.Second

// tourOf waits for the text and returns it.
func (d *dev) tourOf() string {
	d.t.Helper()
	limit := time.After(untilText)
	for {
		out, errs := d.text()
		if strings.Contains(out, "Ctrl-C ends it.") {
			if strings.Contains(out, "Not everything is up yet") {
				d.t.Fatalf("%s\n%s", out, errs)
			}
			return out
		}
		select {
		case <-d.done:
			d.t.Fatalf("ended:\n%s\n%s", out, errs)
		case <-limit:
			d.t.Fatalf("no text within %v:\n%s\n%s", untilText, out, errs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// end sends a signal and waits for the end of the process.
func (d *dev) end(limit time.Duration, signals ...syscall.Signal) (code int, took time.Duration) {
	d.t.Helper()
	began := time.Now()
	for i, s := range signals {
		if i > 0 {
			time.Sleep(30 * time.Millisecond) // two equal signals at once are one
		}
		if err := d.cmd.Process.Signal(s); err != nil {
			d.t.Fatal(err)
		}
	}
	select {
	case <-d.done:
	case <-time.After(limit):
		out, errs := d.text()
		d.t.Fatalf("still running %v after %v:\n%s\n%s", limit, signals, out, errs)
	}
	return d.cmd.ProcessState.ExitCode(), time.Since(began)
}

func get(t *testing.T, method, url string) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

var curlLine = regexp.MustCompile(`curl -s (?:-X (\w+) )?(http://\S+?);?(?:\s|$)`)

// address is what the text gives for a part: "proxy     http://127.0.0.1:8080".
func address(t *testing.T, tour, part string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  ` + part + ` +(?:http://)?(\S+)`).FindStringSubmatch(tour)
	if m == nil {
		t.Fatalf("no address of %s in\n%s", part, tour)
	}
	return m[1]
}

func TestFromStartToTheLastGoodbye(t *testing.T) {
	data := filepath.Join(t.TempDir(), "state")
	d := launch(t, append(freePorts, "--data="+data, "--beat-interval=1s")...)
	tour := d.tourOf()

	lines := curlLine.FindAllStringSubmatch(tour, -1)
	if len(lines) < 10 {
		t.Fatalf("only %d curl lines in\n%s", len(lines), tour)
	}
	for _, l := range lines {
		method := l[1]
		if method == "" {
			method = http.MethodGet
		}
		code, body := get(t, method, l[2])
		flaky := strings.HasSuffix(l[2], "/flaky/") && code == 500
		if code != 200 && !flaky {
			t.Errorf("%s: %d %s", l[0], code, body)
		}
	}
	if code, body := get(t, http.MethodGet, "http://"+address(t, tour, "admin")+"/readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, body)
	}

	trafficMoves(t, tour)

	code, took := d.end(15*time.Second, syscall.SIGINT)
	if code != 0 {
		_, errs := d.text()
		t.Errorf("exit code %d:\n%s", code, errs)
	}
	if took > 5*time.Second {
		t.Errorf("took %v to end, want at most 5 s", took)
	}
	if left, _ := os.ReadDir(d.tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	said := goodbyes(t, filepath.Join(data, "broker"))
	for _, want := range []string{"whoami/whoami-1", "slow/slow-1", "slow/slow-2", "slow/slow-3", "flaky/flaky-1", "flaky/flaky-2", "flaky/flaky-3"} {
		if !said[want] {
			t.Errorf("no goodbye of %s", want)
		}
	}
	stateIsKept(t, data)
}

// trafficMoves stops an instance: from the answer on, nothing may fail, and soon nothing goes there.
func trafficMoves(t *testing.T, tour string) {
	t.Helper()
	proxy, demo := address(t, tour, "proxy"), address(t, tour, "demo")
	get(t, http.MethodPost, "http://"+demo+"/whoami-1/start")
	seen := func() map[string]int {
		by := map[string]int{}
		for range 9 {
			code, body := get(t, http.MethodGet, "http://"+proxy+"/whoami/")
			if code != 200 {
				t.Errorf("%d %s", code, body)
			}
			by[strings.Fields(body)[0]]++
		}
		return by
	}
	await := func(what string, ok func(map[string]int) bool) {
		t.Helper()
		limit, last := time.Now().Add(10*time.Second), map[string]int(nil)
		for time.Now().Before(limit) {
			if last = seen(); ok(last) {
				return
			}
		}
		t.Errorf("%s: got %v", what, last)
	}
	await("whoami-1 is back", func(by map[string]int) bool { return by["whoami-1"] > 0 })
	get(t, http.MethodPost, "http://"+demo+"/whoami-1/stop")
	if by := seen(); by["whoami-1"] != 0 || by["whoami-3"] == 0 {
		t.Errorf("a stopped instance has traffic: %v", by)
	}
	get(t, http.MethodPost, "http://"+demo+"/whoami-1/start")
	await("whoami-1 takes part again", func(by map[string]int) bool { return by["whoami-1"] > 0 })
}

// goodbyes reads who left from the state of a broker.
func goodbyes(t *testing.T, dir string) map[string]bool {
	t.Helper()
	b := launch(t, "broker", "--listen=127.0.0.1:0", "--data="+dir, "--log-format=json")
	addr := b.listening("broker")
	said := map[string]bool{}
	for part := range 6 {
		conn, err := kafka.DialLeader(t.Context(), "tcp", addr, "topic_heartbeat", part)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		first, last, err := conn.ReadOffsets()
		if err != nil {
			t.Fatal(err)
		}
		if first == last {
			continue
		}
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{addr}, Topic: "topic_heartbeat", Partition: part, MaxWait: 50 * time.Millisecond})
		defer r.Close()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			m, err := r.ReadMessage(ctx)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if beat, err := heartbeat.DecodeRecord(m.Key, m.Value); err == nil {
				said[string(beat.Key())] = beat.Status == heartbeat.StatusLeaving
			}
			if m.Offset == last-1 {
				break
			}
		}
	}
	if code, _ := b.end(10*time.Second, syscall.SIGTERM); code != 0 {
		t.Errorf("broker: exit code %d", code)
	}
	return said
}

// listening waits for the log line of a part and returns its address.
func (d *dev) listening(part string) string {
	d.t.Helper()
	limit := time.After(untilText)
	for {
		_, errs := d.text()
		for line := range strings.SplitSeq(errs, "\n") {
			var l struct{ Addr, For, Message string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Message == "listening" && l.For == part {
				return l.Addr
			}
		}
		select {
		case <-limit:
			d.t.Fatalf("%s does not listen:\n%s", part, errs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stateIsKept starts again on the same folder: the versions of the topology go on where they were.
func stateIsKept(t *testing.T, data string) {
	t.Helper()
	before := newestVersion(t, data)
	d := launch(t, append(freePorts, "--data="+data, "--beat-interval=1s")...)
	tour := d.tourOf()
	code, body := get(t, http.MethodGet, "http://"+address(t, tour, "registry")+"/v1/topology")
	var now struct{ Version int64 }
	if err := json.Unmarshal([]byte(body), &now); code != 200 || err != nil {
		t.Fatalf("%d %v %s", code, err, body)
	}
	if before < 2 || now.Version <= before {
		t.Errorf("version %d after a restart, was %d", now.Version, before)
	}
	if code, _ := d.end(15*time.Second, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// newestVersion asks the registry role alone, on the file that the process left.
func newestVersion(t *testing.T, data string) int64 {
	t.Helper()
	r := launch(t, "registry", "--listen=127.0.0.1:0", "--kafka-brokers=127.0.0.1:1", "--log-format=json", "--sqlite="+filepath.Join(data, "registry.db"))
	code, body := get(t, http.MethodGet, "http://"+r.listening("registry")+"/v1/topology")
	var was struct{ Version int64 }
	if err := json.Unmarshal([]byte(body), &was); code != 200 || err != nil {
		t.Fatalf("%d %v %s", code, err, body)
	}
	r.end(10*time.Second, syscall.SIGTERM)
	return was.Version
}

func TestSecondSignalEndsAtOnceAndLeavesNothing(t *testing.T) {
	d := launch(t, freePorts...)
	tour := d.tourOf()
	if left, _ := os.ReadDir(d.tmp); len(left) != 1 {
		t.Fatalf("temporary folders: %v", left)
	}
	// A request that hangs on keeps the orderly end waiting, so that there is something to cut short.
	conn, err := net.Dial("tcp", address(t, tour, "proxy"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /slow/ HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	code, took := d.end(5*time.Second, syscall.SIGINT, syscall.SIGINT)
	if code != 130 || took > time.Second {
		t.Errorf("exit code %d after %v, want 130 at once", code, took)
	}
	if left, _ := os.ReadDir(d.tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestATakenPortIsNamedWithItsFlag(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for i, flag := range []string{"--listen", "--admin-listen", "--registry-listen", "--broker-listen", "--demo-listen"} {
		t.Run(flag, func(t *testing.T) {
			args := append([]string(nil), freePorts...)
			args[i] = flag + "=" + ln.Addr().String()
			d := launch(t, args...)
			select {
			case <-d.done:
			case <-time.After(untilText):
				t.Fatal("runs on a taken port")
			}
			out, errs := d.text()
			if d.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errs, ln.Addr().String()) || !strings.Contains(errs, "("+flag+")") {
				t.Errorf("exit code %d:\n%s\n%s", d.cmd.ProcessState.ExitCode(), out, errs)
			}
			if left, _ := os.ReadDir(d.tmp); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestDemoServiceAlone(t *testing.T) {
	d := launch(t, "demo", "--listen=127.0.0.1:0", "--name=hello-1", "--log-format=json")
	addr := d.listening("demo")
	if code, body := get(t, http.MethodGet, "http://"+addr+"/x"); code != 200 || body != "hello-1 answers GET /x\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := d.end(10*time.Second, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestADataFolderServesOneProcess(t *testing.T) {
	data := filepath.Join(t.TempDir(), "state")
	d := launch(t, append(freePorts, "--data="+data)...)
	d.tourOf()
	second := launch(t, append(freePorts, "--data="+data)...)
	select {
	case <-second.done:
	case <-time.After(untilText):
		t.Fatal("two processes run on one folder")
	}
	if _, errs := second.text(); !strings.Contains(errs, "in use by another process") {
		t.Error(errs)
	}
}
