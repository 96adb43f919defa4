package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
)

// version runs a program for the number that it calls itself.
func version(ctx context.Context, program string, args ...string) string {
	out, _ := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+`).Find(out))
}

// location is what a request meets, in nginx's syntax; ours is given the same.
const location = `location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_max_temp_file_size 0; }`

// servers are the three servers, in nginx's syntax, ours too; tls goes at the end of listen.
func servers(c *contender, b *bench, log, tls string) string {
	text := fmt.Sprintf(`upstream origin { server %s; keepalive 1024; keepalive_requests 1000000000; keepalive_timeout 300s; }
keepalive_requests 1000000000; keepalive_timeout 300s;
server { listen %s; access_log off; %s }
server { listen %s; access_log %s; %s }
`, b.origin, c.doors[plain], location, c.doors[logged], log, location)
	if tls != "" {
		text += fmt.Sprintf("server { listen %s %s; access_log off; ssl_certificate %s; ssl_certificate_key %s; %s }\n", c.doors[secure], tls, b.cert, b.key, location)
	}
	return text
}

func nginx(ctx context.Context, b *bench) (*contender, error) {
	return nginxWith(ctx, b, "nginx", func(conf string) string { return conf })
}

// nginxWith changes the part of the configuration that is ours as well.
func nginxWith(ctx context.Context, b *bench, name string, rewrite func(conf string) string) (*contender, error) {
	path, err := lookup("nginx", "apt-get install --no-install-recommends nginx-light")
	if err != nil {
		return nil, err
	}
	c, dir, err := b.newContender(name)
	if err != nil {
		return nil, err
	}
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	conf, err := write(dir, "nginx.conf", `daemon off; master_process off; worker_processes 1; worker_rlimit_nofile 65536;
pid %s/pid; error_log %s/error.log error;
events { worker_connections 60000; }
http {
%s%s}
`, dir, dir, temp, rewrite(servers(c, b, filepath.Join(dir, "access.log"), "ssl http2")))
	if err != nil {
		return nil, err
	}
	c.version = version(ctx, path, "-v")
	return b.bring(ctx, c, nil, path, "-c", conf, "-p", dir, "-e", filepath.Join(dir, "error.log"))
}

func haproxy(ctx context.Context, b *bench) (*contender, error) {
	path, err := lookup("haproxy", "apt-get install --no-install-recommends haproxy")
	if err != nil {
		return nil, err
	}
	c, dir, err := b.newContender("haproxy")
	if err != nil {
		return nil, err
	}
	// Its log goes to standard output, which is a file here: it knows no other.
	conf, err := write(dir, "haproxy.cfg", `global
  nbthread 1
  maxconn 9000
  tune.ssl.default-dh-param 2048
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 60s
  timeout http-keep-alive 300s
  http-reuse always
frontend plain
  bind %s
  default_backend origin
frontend logged
  bind %s
  log stdout format raw local0
  log-format "%%ci - - [%%tr] \"%%HM %%HP %%HV\" %%ST %%B %%Tt"
  default_backend origin
frontend secure
  bind %s ssl crt %s alpn h2,http/1.1
  default_backend origin
backend origin
  server origin %s pool-max-conn 2048 pool-purge-delay 300s
`, c.doors[plain], c.doors[logged], c.doors[secure], b.cert, b.origin)
	if err != nil {
		return nil, err
	}
	c.version = version(ctx, path, "-v")
	return b.bring(ctx, c, nil, path, "-db", "-f", conf)
}

func caddy(ctx context.Context, b *bench) (*contender, error) {
	if err := b.build(ctx, "caddy", "deploy/bench/caddy", "."); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, errMissing{"Caddy", err.Error()}
	}
	c, dir, err := b.newContender("caddy")
	if err != nil {
		return nil, err
	}
	forward := fmt.Sprintf("reverse_proxy %s {\n transport http {\n  keepalive_idle_conns_per_host 1024\n  keepalive_idle_conns 0\n  compression off\n }\n}\n", b.origin)
	conf, err := write(dir, "Caddyfile", `{
 admin off
 auto_https off
 persist_config off
 default_bind 127.0.0.1
 log {
  level ERROR
 }
 servers {
  protocols h1 h2
 }
}
http://%[1]s {
%[4]s}
http://%[2]s {
 log {
  output file %[5]s
 }
%[4]s}
https://%[3]s {
 tls %[6]s %[7]s
%[4]s}
`, onPort(c.doors[plain]), onPort(c.doors[logged]), onPort(c.doors[secure]), forward, filepath.Join(dir, "access.log"), b.cert, b.key)
	if err != nil {
		return nil, err
	}
	c.version = version(ctx, b.program("caddy"), "version")
	if c.version == "" {
		c.version = pinned("deploy/bench/caddy/go.mod", "github.com/caddyserver/caddy/v2")
	}
	home := []string{"GOMAXPROCS=1", "XDG_DATA_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}
	return b.bring(ctx, c, home, b.program("caddy"), "run", "--adapter", "caddyfile", "--config", conf)
}

func reverseproxy(ctx context.Context, b *bench) (*contender, error) {
	if err := b.build(ctx, "reverse", ".", "./deploy/bench/reverse"); err != nil {
		return nil, err
	}
	c, dir, err := b.newContender("reverseproxy")
	if err != nil {
		return nil, err
	}
	return b.bring(ctx, c, []string{"GOMAXPROCS=1"}, b.program("reverse"), "-plain", c.doors[plain], "-logged", c.doors[logged], "-tls", c.doors[secure],
		"-cert", b.cert, "-key", b.key, "-log", filepath.Join(dir, "access.log"), "-backend", b.origin)
}
