package main

import (
	"regexp"
	"strconv"
	"time"
)

// row is a kind of request and how many of them are under way.
type row struct {
	name, what string
	door       door
	mode       string // of the load generator
	conns      int
	streams    int // of each connection, for HTTP/2
	body       int // bytes that a request sends: it is a POST
	length     int // bytes of the answer's body
}

const (
	small  = 128
	medium = 100 << 10
	large  = 10 << 20
)

var rows = []row{
	{name: "get-1", what: "GET 128 B, 1 connection", door: plain, mode: "h1", conns: 1, length: small},
	{name: "get-64", what: "GET 128 B, 64 connections", door: plain, mode: "h1", conns: 64, length: small},
	{name: "get-512", what: "GET 128 B, 512 connections", door: plain, mode: "h1", conns: 512, length: small},
	{name: "post-4k", what: "POST 4 KiB, 64 connections", door: plain, mode: "h1", conns: 64, body: 4 << 10, length: small},
	{name: "get-100k", what: "GET 100 KiB, 64 connections", door: plain, mode: "h1", conns: 64, length: medium},
	{name: "get-10m", what: "GET 10 MiB, 8 connections", door: plain, mode: "h1", conns: 8, length: large},
	{name: "log-64", what: "GET 128 B, 64 connections, access log", door: logged, mode: "h1", conns: 64, length: small},
	{name: "tls-64", what: "GET 128 B over TLS, 64 connections", door: secure, mode: "tls", conns: 64, length: small},
	{name: "h2-64", what: "GET 128 B over HTTP/2, 8 connections of 8 streams", door: secure, mode: "h2", conns: 8, streams: 8, length: small},
}

// chosen are the rows whose names fit.
func chosen(list []row, fit *regexp.Regexp) []row {
	var out []row
	for _, r := range list {
		if fit.MatchString(r.name) {
			out = append(out, r)
		}
	}
	return out
}

// arguments are those of the load generator.
func (r row) arguments(addr string, warm, window time.Duration, pid int) []string {
	method := "GET"
	if r.body > 0 {
		method = "POST"
	}
	return []string{"-addr", addr, "-mode", r.mode, "-conns", strconv.Itoa(r.conns), "-streams", strconv.Itoa(max(1, r.streams)), "-method", method,
		"-path", "/" + strconv.Itoa(r.length), "-body", strconv.Itoa(r.body), "-length", strconv.Itoa(r.length),
		"-warm", warm.String(), "-window", window.String(), "-pid", strconv.Itoa(pid)}
}
