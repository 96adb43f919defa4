package mysqldb

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

const secretText = "correct-horse-battery"

func parse(t *testing.T, args ...string) (*Options, *settings.Set) {
	t.Helper()
	fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
	set, o := settings.NewSet(fs), &Options{}
	o.Flags(set)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, set
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDriverGetsWhatTheStoreRelies(t *testing.T) {
	o, set := parse(t, "--mysql-addr=db:3307", "--mysql-database=reg", "--mysql-user=me", "--mysql-password-file="+file(t, secretText+"\n"), "--mysql-timeout=7s")
	if err := set.Problems().Err(); err != nil {
		t.Fatal(err)
	}
	conf, err := o.config(zerolog.Nop(), false)
	if err != nil {
		t.Fatal(err)
	}
	if !conf.ClientFoundRows || !conf.InterpolateParams || !conf.RejectReadOnly || conf.ReadTimeout != 7*time.Second || conf.WriteTimeout != 7*time.Second || conf.Timeout == 0 {
		t.Errorf("config %+v", conf)
	}
	dsn := conf.FormatDSN()
	for _, want := range []string{"me:" + secretText + "@tcp(db:3307)/reg", "charset=utf8mb4", "wait_timeout=5", "net_write_timeout=5", "autocommit=1"} {
		if !strings.Contains(dsn, want) {
			t.Errorf("DSN lacks %q", want)
		}
	}
	if conf.TLS != nil {
		t.Error("TLS without being asked for")
	}
	if !conf.CheckConnLiveness {
		t.Error("what the server closed would be used")
	}
	if conf, err := o.config(zerolog.Nop(), true); err != nil || conf.ReadTimeout != 0 || conf.WriteTimeout != 0 || len(conf.Params) > 0 {
		t.Errorf("patient: config %+v, error %v", conf, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", o), secretText) {
		t.Error("the options hold the password")
	}
}

func TestSocketAndTLS(t *testing.T) {
	o, _ := parse(t, "--mysql-addr=/run/mysqld/mysqld.sock")
	if conf, err := o.config(zerolog.Nop(), false); err != nil || conf.Net != "unix" {
		t.Errorf("net %q, error %v", conf.Net, err)
	}
	cases := map[string]struct {
		args               []string
		name               string
		insecure, fallback bool
	}{
		"true":        {[]string{"--mysql-tls=true"}, "db", false, false},
		"named":       {[]string{"--mysql-tls=true", "--mysql-tls-server-name=other"}, "other", false, false},
		"skip-verify": {[]string{"--mysql-tls=skip-verify"}, "db", true, false},
		"preferred":   {[]string{"--mysql-tls=preferred"}, "db", true, true},
	}
	for name, c := range cases {
		o, set := parse(t, append(c.args, "--mysql-addr=db:3306")...)
		if err := set.Problems().Err(); err != nil {
			t.Fatal(err)
		}
		conf, err := o.config(zerolog.Nop(), false)
		if err != nil {
			t.Fatal(err)
		}
		if conf.TLS.ServerName != c.name || conf.TLS.InsecureSkipVerify != c.insecure || conf.AllowFallbackToPlaintext != c.fallback {
			t.Errorf("%s: name %q, insecure %v, fallback %v", name, conf.TLS.ServerName, conf.TLS.InsecureSkipVerify, conf.AllowFallbackToPlaintext)
		}
	}
}

func TestProblems(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"address":           {[]string{"--mysql-addr=db"}, "--mysql-addr"},
		"empty password":    {[]string{"--mysql-password-file=" + file(t, "\n")}, "is empty"},
		"files without tls": {[]string{"--mysql-tls-server-name=x"}, "not false"},
		"bad authorities":   {[]string{"--mysql-tls=true", "--mysql-tls-ca=" + file(t, "x")}, "holds no certificate"},
		"mode":              {[]string{"--mysql-tls=perhaps"}, "skip-verify"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, set := parse(t, c.args...)
			if err := set.Problems().Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// A server that hangs up at once makes the driver complain in its log and in its error: neither may show the password.
func TestPasswordStaysOutOfLogAndErrors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				c.Close()
			}
		}
	}()
	defer func() { ln.Close(); <-done }()
	o, _ := parse(t, "--mysql-addr="+ln.Addr().String(), "--mysql-password-file="+file(t, secretText))
	var log bytes.Buffer
	db, err := o.Open(zerolog.New(&log), false)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.PingContext(t.Context())
	if err == nil {
		t.Fatal("a server that hangs up answered")
	}
	if strings.Contains(err.Error()+log.String(), secretText) {
		t.Errorf("the password shows: %v\n%s", err, log.String())
	}
}
