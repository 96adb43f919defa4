// Command differ sends the same raw bytes to the proxy, configured by a file and by a topology, and to a real nginx, each in front of a
// recording backend, and compares what came out behind them. What the proxy forwards must mean the same as what nginx forwards: the
// same requests in the same order with the same method, target, host, fields and body. That the proxy refuses more is right.
// Everything else is a finding: it is made as small as it goes and printed with its number. -only NUMBER sends that one again.
//
// The bytes are made by a grammar that knows what proxies get wrong (generate.go), and then mutated. The same seed and number give the
// same bytes. What is known to differ for a reason is in known.go.
package main
