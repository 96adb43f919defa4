// Command reverse is the shortest reverse proxy that Go's standard library allows, net/http's server before httputil.ReverseProxy, for the benchmark of
// proxies beside us. It serves plain HTTP, the same with a line of log for each request, and TLS with HTTP/2.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"
)

func main() {
	plain := flag.String("plain", "", "ip:port for HTTP")
	logged := flag.String("logged", "", "ip:port for HTTP with an access log")
	secure := flag.String("tls", "", "ip:port for TLS")
	cert := flag.String("cert", "", "certificate, PEM")
	key := flag.String("key", "", "its key, PEM")
	file := flag.String("log", "", "file of the access log")
	backend := flag.String("backend", "", "ip:port of the backend")
	flag.Parse()
	h := forward(*backend)
	out, err := os.OpenFile(*file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal("reverse: ", err)
	}
	failed := make(chan error)
	go func() { failed <- http.ListenAndServe(*plain, h) }()
	go func() { failed <- http.ListenAndServe(*logged, record(h, out)) }()
	go func() { failed <- http.ListenAndServeTLS(*secure, *cert, *key, h) }()
	log.Fatal("reverse: ", <-failed)
}

func forward(backend string) http.Handler {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.MaxIdleConns = 1024, 0
	t.DisableCompression = true
	to := &url.URL{Scheme: "http", Host: backend}
	return &httputil.ReverseProxy{Transport: t, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}

// counted knows the status and length of an answer.
type counted struct {
	http.ResponseWriter
	status, length int
}

func (c *counted) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.length += n
	return n, err
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// record writes a line for each request, as nginx's log does without buffer=.
func record(h http.Handler, out *os.File) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := &counted{ResponseWriter: w}
		h.ServeHTTP(c, r)
		line := fmt.Appendf(nil, "%s - - [%s] %s %d %d %s %s %.3f\n", r.RemoteAddr, began.Format("02/Jan/2006:15:04:05 -0700"),
			strconv.Quote(r.Method+" "+r.RequestURI+" "+r.Proto), c.status, c.length, strconv.Quote(r.Referer()), strconv.Quote(r.UserAgent()), time.Since(began).Seconds())
		_, _ = out.Write(line)
	})
}
