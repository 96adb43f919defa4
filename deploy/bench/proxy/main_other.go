//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "the benchmark of proxies needs Linux: epoll, /proc and taskset")
	os.Exit(1)
}
