package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/upstrand/upstrand/deploy/rig"
)

// stateHas looks for the addresses of all instances in the file that a proxy keeps; one that is still being written does
// not count.
func stateHas(dir, proxy, service string, all []*rig.Instance) error {
	var content []byte
	root := filepath.Join(dir, proxy+".state")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".new") {
			return err
		}
		b, err := os.ReadFile(path)
		content = append(content, b...)
		return err
	})
	if err != nil {
		return err
	}
	for _, i := range all {
		if !bytes.Contains(content, []byte(i.Addr)) {
			return fmt.Errorf("%s of %s is not in the state of %s", i.ID, service, proxy)
		}
	}
	return nil
}
