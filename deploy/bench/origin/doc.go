// Command origin is the backend of the benchmark of proxies, the same for all of them: the path says how many bytes the answer has ("/128"), a body of a
// request is read and thrown away. One thread, one read and one write for a small request, so that it is never the bottleneck;
// and as long as requests come it does not sleep, so that no proxy pays for waking it.
//
// It knows just enough HTTP/1.1 for what the proxies of the benchmark send: keep-alive, Content-Length, no chunks.
package main
