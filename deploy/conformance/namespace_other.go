//go:build !linux

package conformance

import (
	"errors"
	"syscall"
)

func ownNetwork() *syscall.SysProcAttr { return nil }
func dieWithUs() *syscall.SysProcAttr  { return nil }
func loopbackUp() error                { return errors.New("network namespaces are Linux's") }
