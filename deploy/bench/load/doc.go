// Command load is the client of the benchmark of proxies. It keeps some connections busy for a moment, over HTTP/1.1, HTTP/1.1 on TLS or HTTP/2, checks the status
// and the length of every answer and how long each connection waited for it, reads how much processor time the proxy used meanwhile, and prints one
// figures.Result in JSON.
//
// By default each connection sends its next request when its answer is complete. With -rate requests leave at their time, whether answers have come or not, and
// latency is counted from the time that they should have left, so that a slow proxy can't hide behind a client that waits for it. With -hold it opens connections, makes
// one request on each, and keeps them open without a word until its standard input ends.
//
// It runs on one thread and never sleeps while a run lasts: who sends to a sleeping process pays for waking it, which on a network it would not.
// It is fit for measuring and nothing else: certificates are not verified, and answers without Content-Length are errors.
package main
