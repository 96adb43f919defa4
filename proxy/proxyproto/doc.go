// Package proxyproto reads the header of the PROXY protocol, versions 1 and 2, with which a balancer in front says at the
// beginning of a connection who the client is: https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt.
//
// It decides nothing: whether what the header says is believed is a question of who sent it, and of the configuration. It
// writes no headers.
package proxyproto
