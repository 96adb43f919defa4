package site

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // logs are written in the zone of the machine
	goleak.VerifyTestMain(m)
}
