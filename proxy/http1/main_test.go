package http1

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(peerVariable) != "" {
		runPeer()
		return
	}
	goleak.VerifyTestMain(m)
}
