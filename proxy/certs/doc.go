// Package certs is the certificates of a proxy: those that it shows to clients, those that it asks of them, and those of the
// way to backends. It loads them from files, chooses one for a handshake, judges what a client shows, and looks whether the
// files change: then connections that begin afterwards get the new ones, and none that is open is touched. A new file that
// can't be used leaves the old one in force.
//
// It makes no handshakes (crypto/tls does), opens no sockets, knows no servers or names of the configuration, and fetches
// or renews nothing: whoever writes the files does.
package certs
