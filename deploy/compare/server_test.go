package compare

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/upstrand/upstrand/deploy/rig"
)

// side is one of the two programs that are compared.
type side struct {
	name string
	// command gives the program and its arguments for a configuration file.
	command func(conf, dir, admin string) (string, []string)
	// file makes of a configuration the one that this program is given.
	file func(conf, dir string) string
}

var sides = []side{
	{"nginx", nginxCommand, nginxFile},
	{"upstrand", func(conf, _, admin string) (string, []string) {
		return upstrand, []string{"proxy", "--conf", conf, "--admin-listen", admin, "--drain-timeout", "1s"}
	}, func(conf, _ string) string { return conf }},
}

// mechanics are the lines of a whole file that speak of the process: the runner's own stand for them under nginx.
var mechanics = regexp.MustCompile(`(?m)^\s*(user|pid|error_log|load_module|worker_processes|daemon|worker_rlimit_nofile)\s[^;]*;`)

// whole recognises a file that is one as it stands.
var whole = regexp.MustCompile(`(?m)^events\s*\{`)

// nginxFile adds to a configuration what nginx needs to run from a folder of its own. A fragment becomes a whole file.
func nginxFile(conf, dir string) string {
	main := fmt.Sprintf("daemon off;\nworker_processes 1;\nuser root;\npid %s/pid;\nerror_log %s/error.log warn;\n", dir, dir)
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	if !whole.MatchString(conf) {
		return main + "events {}\nhttp {\n" + temp + "access_log off;\n" + conf + "\n}\n"
	}
	conf = mechanics.ReplaceAllString(conf, "")
	return main + strings.Replace(conf, "http {", "http {\n"+temp, 1)
}

func nginxCommand(conf, dir, _ string) (string, []string) {
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = "/usr/sbin/nginx"
	}
	return path, []string{"-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log")}
}

// start runs the program on the configuration until the end of the test, or until the returned function stops it.
func (s side) start(t *testing.T, conf, listen string) (stop func()) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, s.name+".conf")
	if err := os.WriteFile(file, []byte(s.file(conf, dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	admin, err := rig.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	path, args := s.command(file, dir, admin)
	p := &rig.Proc{Name: s.name, Path: path, Args: args, Log: filepath.Join(dir, "output")}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = p.Term(5 * time.Second)
			p.Close()
		}
	}
	t.Cleanup(stop)
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
			return stop
		}
		if !p.Alive() || time.Now().After(until) {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Fatalf("%s does not listen on %s:\n%s%s", s.name, listen, p.Output(), log)
		}
	}
}
