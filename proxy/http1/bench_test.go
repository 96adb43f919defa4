package http1

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/upstrand/upstrand/proxy/forward"
)

const benchAnswer = "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: text/plain\r\n" +
	"Content-Length: 12\r\nConnection: keep-alive\r\nX-Request-Id: 0123456789abcdef\r\n\r\nhello, world"

// peerVariable makes this binary a peer and nothing else, so that its work is not counted as ours.
const peerVariable = "UPSTRAND_BENCH_PEER"

// runPeer answers each head that ends in what it reads, with as little work as it can, until its input ends.
func runPeer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(os.Stdout, l.Addr().String()+"\n")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go peer(c)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func peer(c net.Conn) {
	buf, answer := make([]byte, 64<<10), []byte(benchAnswer)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		// The body of the benchmark's requests ends so too.
		if bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

func benchPeer(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), peerVariable+"=1", "GOMAXPROCS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

func benchFields() []forward.Field {
	var out []forward.Field
	for _, f := range [][2]string{
		{"Accept", "*/*"}, {"Accept-Encoding", "gzip"}, {"User-Agent", "bench/1"}, {"X-Forwarded-For", "127.0.0.1"},
		{"X-Forwarded-Proto", "http"}, {"X-Forwarded-Host", "shop.example"},
	} {
		out = append(out, forward.Field{Name: []byte(f[0]), Value: []byte(f[1])})
	}
	return out
}

// cpu reports the time of all threads of this process for each request.
func cpu(b *testing.B) func() {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	return func() {
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		ns := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(ns)/float64(b.N), "cpu-ns/op")
	}
}

// BenchmarkGet is a plain GET on a kept connection to a peer in a process of its own, by how much processor time ours takes for
// one. "floor" does nothing but write and read through net.Conn.
func BenchmarkGet(b *testing.B) {
	for _, tc := range []struct {
		name string
		run  func(b *testing.B, addr string)
	}{{"floor", benchFloor}, {"http1", benchOurs(context.Background())}, {"http1 with a client", benchWithClient}, {"net_http", benchNetHTTP}} {
		b.Run(tc.name, func(b *testing.B) {
			addr := benchPeer(b)
			b.ReportAllocs()
			tc.run(b, addr)
		})
	}
}

func benchWithClient(b *testing.B, addr string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	benchOurs(ctx)(b, addr)
}

func benchOurs(ctx context.Context) func(*testing.B, string) {
	return func(b *testing.B, addr string) {
		ps := NewPools(Settings{}, nil)
		defer ps.Close()
		p, _ := peerAt(b, ps, PoolKey{Server: "a", Scheme: "http", Addr: addr})
		r := get()
		r.Fields = benchFields()
		buf := make([]byte, 4096)
		done := cpu(b)
		for b.Loop() {
			at := ps.Open(ctx, p, false)
			if err := at.Send(r); err != nil {
				b.Fatal(err)
			}
			if status, _, err := at.Head(); status != 200 || err != nil {
				b.Fatal(status, err)
			}
			if n, err := at.Body().Read(buf); n != 12 || err != io.EOF {
				b.Fatal(n, err)
			}
			at.Close()
			at.(*attempt).Release()
		}
		done()
	}
}

// BenchmarkManyGets is as many at the same time, so that what one touches before its answer is out of the processor's caches
// after it.
func BenchmarkManyGets(b *testing.B) {
	for _, many := range []int{64, 512} {
		b.Run(strconv.Itoa(many), func(b *testing.B) {
			ps := NewPools(Settings{IdleMax: many}, nil)
			defer ps.Close()
			p, _ := peerAt(b, ps, PoolKey{Server: "a", Scheme: "http", Addr: benchPeer(b)})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var begun atomic.Int64
			one := func(r *forward.Request) error {
				at := ps.Open(ctx, p, false)
				defer at.(*attempt).Release()
				if _, _, err := exchanged(at, r); err != nil {
					return err
				}
				if rest, ok := at.Body().(forward.AtHand).AtHand(); !ok || len(rest) != 12 {
					return io.ErrUnexpectedEOF
				}
				return nil
			}
			all := func() {
				var wg sync.WaitGroup
				for range many {
					wg.Go(func() {
						r := get()
						r.Fields = benchFields()
						for begun.Add(1) <= int64(b.N) {
							if err := one(r); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			}
			begun.Store(int64(b.N - 2*many)) // to open the connections
			all()
			begun.Store(0)
			b.ResetTimer()
			done := cpu(b)
			all()
			done()
		})
	}
}

func benchNetHTTP(b *testing.B, addr string) {
	tr := &http.Transport{DisableCompression: true, ResponseHeaderTimeout: time.Minute}
	defer tr.CloseIdleConnections()
	header := http.Header{}
	for _, f := range benchFields() {
		header.Set(string(f.Name), string(f.Value))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	buf := make([]byte, 4096)
	done := cpu(b)
	for b.Loop() {
		req := (&http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: addr, Opaque: "/"}, Host: "shop", Header: header, ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		n, _ := io.ReadFull(resp.Body, buf[:12])
		if n != 12 {
			b.Fatal(n)
		}
		_, _ = resp.Body.Read(buf)
		_ = resp.Body.Close()
	}
	done()
}

func benchFloor(b *testing.B, addr string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	out := []byte("GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
	buf := make([]byte, 4096)
	done := cpu(b)
	for b.Loop() {
		if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
	done()
}
