package compare

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// upstrand is the program under test, built once.
var upstrand string

func TestMain(m *testing.M) {
	if os.Getenv("UPSTRAND_COMPARE") == "" {
		fmt.Println("compare: skipped, it needs a real nginx: make compare-nginx")
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "upstrand-compare-")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if os.Getenv("UPSTRAND_COMPARE") == "nginx" { // with itself: then what differs is the comparison's fault
		sides[1] = sides[0]
	} else if upstrand = os.Getenv("UPSTRAND_BINARY"); upstrand == "" {
		upstrand = filepath.Join(dir, "upstrand")
		build := exec.Command("go", "build", "-o", upstrand, "../../cmd/upstrand")
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Println("compare: build:", err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}
