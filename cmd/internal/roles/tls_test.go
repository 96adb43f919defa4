package roles

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/proxy/certs/certstest"
)

// TestTLSFlags: what can't go together is told, flag by flag.
func TestTLSFlags(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"a"}))
	_, other := certstest.Write(t, dir, "b", ca.Leaf([]string{"b"}))
	authority := filepath.Join(dir, "ca.pem")
	certstest.Put(t, authority, ca.PEM())
	for name, tc := range map[string]struct {
		args []string
		want string // of the problems; empty: none
	}{
		"none":             {nil, ""},
		"all":              {[]string{"tls-listen=:8443,127.0.0.1:0", "tls-cert=" + cert, "tls-key=" + key, "tls-client-ca=" + authority, "tls-client-verify=on", "tls-min-version=1.3", "http2=false"}, ""},
		"no certificate":   {[]string{"tls-listen=:8443"}, "tls-cert: needed with --tls-listen"},
		"no address":       {[]string{"tls-cert=" + cert, "tls-key=" + key}, "tls-listen: needed with --tls-cert"},
		"bad address":      {[]string{"tls-listen=8443", "tls-cert=" + cert, "tls-key=" + key}, "tls-listen: allowed: host:port"},
		"keys are missing": {[]string{"tls-listen=:1", "tls-cert=" + cert + "," + cert, "tls-key=" + key}, "tls-key: one for each of --tls-cert: 1 are given for 2"},
		"another key":      {[]string{"tls-listen=:1", "tls-cert=" + cert, "tls-key=" + other}, "tls-cert: key " + other + " does not belong to the certificate"},
		"verify alone":     {[]string{"tls-client-verify=on"}, "tls-client-ca: needed with --tls-client-verify=on"},
		"authority alone":  {[]string{"tls-client-ca=" + authority}, "tls-client-verify: on or optional with --tls-client-ca"},
		"no authority":     {[]string{"tls-listen=:1", "tls-cert=" + cert, "tls-key=" + key, "tls-client-ca=" + key, "tls-client-verify=optional"}, "tls-client-ca: authorities " + key + ": no PEM certificate is in it"},
		"ticket key":       {[]string{"tls-listen=:1", "tls-cert=" + cert, "tls-key=" + key, "tls-ticket-key=" + dir + "/none"}, "tls-ticket-key: key of session tickets: open " + dir + "/none"},
		"ticket key alone": {[]string{"tls-ticket-key=" + dir + "/none"}, "tls-cert: needed with --tls-ticket-key"},
		"version":          {[]string{"tls-min-version=1.1"}, "tls-min-version: allowed: 1.2, 1.3"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := pflag.NewFlagSet("t", pflag.ContinueOnError)
			set, x := settings.NewSet(fs), &clientTLS{}
			x.flags(set)
			for _, a := range tc.args {
				name, value, _ := strings.Cut(a, "=")
				if err := fs.Set(name, value); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, p := range set.Problems() {
				got = append(got, p.Flag+": "+p.Allowed)
			}
			if text := strings.Join(got, "\n"); (text == "") != (tc.want == "") || !strings.Contains(text, tc.want) {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
}

// fetched is what a client gets from a URL; it starts a connection of its own.
func fetched(t *testing.T, ca *certstest.Authority, url string) (status int, body, proto string) {
	t.Helper()
	tr := &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}}
	defer tr.CloseIdleConnections()
	a, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text), a.Proto
}

// TestFileGoesToTLSAndBack: one port speaks plain HTTP, then TLS with HTTP/2, then plain HTTP again, and is never closed.
func TestFileGoesToTLSAndBack(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"127.0.0.1"}))
	addr := freePort(t)
	plain := "server { listen " + addr + "; location / { return 200 $scheme; } }"
	secure := "server { listen " + addr + " ssl; http2 on; ssl_protocols TLSv1.1 TLSv1.2 TLSv1.3; ssl_certificate " + cert + "; ssl_certificate_key " + key + "; location / { return 200 $scheme; } }"
	s := serveFile(t, plain, false)
	for i, text := range []string{plain, secure, plain, secure} {
		if i > 0 {
			s.reload(text)
		}
		url, want := "http://"+addr+"/", "http HTTP/1.1"
		if text == secure {
			url, want = "https://"+addr+"/", "https HTTP/2.0"
		}
		if status, body, proto := fetched(t, ca, url); status != 200 || body+" "+proto != want {
			t.Errorf("%d: %d %s %s, want %s", i, status, body, proto, want)
		}
	}
	if notices := strings.Join(s.conf.State().Notices, "\n"); !strings.Contains(notices, "TLSv1.1 is not spoken") {
		t.Errorf("notices %q", notices)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	s.reload(secure)
	if state := s.conf.State(); state.Current || len(state.Faults) != 1 || !strings.Contains(state.Faults[0], "no such file") {
		t.Errorf("without the certificate: %+v", state)
	}
	if status, _, _ := fetched(t, ca, "https://"+addr+"/"); status != 200 {
		t.Errorf("what was in force before: %d", status)
	}
}

// TestFlagsServeTLS: without a file, plain HTTP and TLS side by side; SIGHUP reads certificates that have changed.
func TestFlagsServeTLS(t *testing.T) {
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := certstest.Write(t, dir, "a", ca.Leaf([]string{"127.0.0.1"}))
	addr := freePort(t)
	x := &Proxy{Listen: "127.0.0.1:0", TLS: clientTLS{Listen: []string{addr}, Certs: []string{cert}, Keys: []string{key}, Verify: "off", Least: "1.3", HTTP2: true}}
	p := NewProcess(zerolog.Nop(), time.Second)
	px, err := x.proxy(p)
	if err != nil {
		t.Fatal(err)
	}
	in, err := x.entrance(p, px, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := px.Apply(&topology.Topology{Version: 1, Config: &topology.Config{}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.serve(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		in.left()
		if err := px.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if status, _, proto := fetched(t, ca, "https://"+addr+"/"); status != 404 || proto != "HTTP/2.0" {
		t.Errorf("TLS: %d %s", status, proto)
	}
	if status, _, proto := fetched(t, ca, "http://"+in.bound.String()+"/"); status != 404 || proto != "HTTP/1.1" {
		t.Errorf("plain: %d %s", status, proto)
	}
	shown := func() string {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is looked at
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	certstest.Write(t, dir, "a", ca.Leaf([]string{"new.example"}))
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); shown() != "new.example"; {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not served")
		}
		time.Sleep(time.Millisecond)
	}
}
