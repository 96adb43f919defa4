package confgen

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios in testdata give now")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
