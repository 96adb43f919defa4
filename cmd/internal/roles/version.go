package roles

import (
	"runtime/debug"
	"sync"
)

// release is set by the linker (-ldflags "-X …roles.release=v1.2.3"); empty in a build from a working copy.
var release string

// Version is the release, or the commit that the binary was built from, or "devel".
var Version = sync.OnceValue(func() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + modified
})
