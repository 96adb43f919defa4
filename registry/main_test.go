package registry

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios in testdata give into them; commit only what you understand")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
