package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"
)

// Modes.
const (
	modeH1  = "h1"
	modeTLS = "tls" // HTTP/1.1 on TLS
	modeH2  = "h2"  // HTTP/2 on TLS
)

// plan is what to do.
type plan struct {
	mode    string
	addr    string // 127.0.0.1:port of the proxy
	host    string
	conns   int
	streams int // of each connection, for h2
	method  string
	path    string
	body    int // bytes that a request sends
	length  int // bytes that each answer's body must have
	warm    time.Duration
	window  time.Duration
	rate    float64 // requests a second; 0: as fast as answers come
	pid     int     // whose processor time is read
}

func main() {
	debug.SetGCPercent(400)
	var p plan
	hold := flag.Bool("hold", false, "open the connections, make one request on each, and keep them until standard input ends")
	flag.StringVar(&p.mode, "mode", "h1", "h1, tls (HTTP/1.1 on TLS) or h2 (HTTP/2 on TLS)")
	flag.StringVar(&p.addr, "addr", "", "ip:port of the proxy (IPv4)")
	flag.StringVar(&p.host, "host", "bench.example", "name in the Host field and of TLS")
	flag.IntVar(&p.conns, "conns", 64, "connections")
	flag.IntVar(&p.streams, "streams", 8, "requests at once on each connection, for h2")
	flag.StringVar(&p.method, "method", "GET", "method")
	flag.StringVar(&p.path, "path", "/128", "path")
	flag.IntVar(&p.body, "body", 0, "bytes of each request's body")
	flag.IntVar(&p.length, "length", 128, "bytes that the body of each answer must have")
	flag.DurationVar(&p.warm, "warm", 300*time.Millisecond, "time before the window")
	flag.DurationVar(&p.window, "window", 1500*time.Millisecond, "time in which requests are counted")
	flag.Float64Var(&p.rate, "rate", 0, "requests a second, for h1 and tls; 0: as fast as answers come")
	flag.IntVar(&p.pid, "pid", 0, "process id of the proxy, whose processor time is read; 0: none")
	flag.Parse()
	var err error
	if *hold {
		err = p.hold(os.Stdin, os.Stdout)
	} else {
		err = p.run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func (p plan) run(out io.Writer) error {
	switch {
	case p.mode != modeH1 && p.mode != modeTLS && p.mode != modeH2:
		return fmt.Errorf("-mode %q: allowed: h1, tls, h2", p.mode)
	case p.rate > 0 && p.mode == modeH2:
		return errors.New("-rate with -mode h2: allowed: h1, tls")
	}
	res, err := loop(p)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(res)
}
