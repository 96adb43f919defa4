// Package syntax is what both directions of HTTP/1 share: which bytes are allowed where, how a line of a head falls into
// name and value, and how a body is taken out of its chunks. It follows RFC 9110 and 9112 where they are strict, and is it
// where they leave a choice.
//
// It reads no connection and knows neither requests nor answers.
package syntax
