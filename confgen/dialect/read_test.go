package dialect

import "testing"

// TestUnreadable: a file that is not there is a fault of that file, and stays in Files so that it can be waited for.
func TestUnreadable(t *testing.T) {
	doc, faults := Read("testdata/none.conf", Options{})
	if len(faults) != 1 || faults[0].Error() != "testdata/none.conf: no such file or directory" || len(doc.Files) != 1 {
		t.Errorf("%v %v", faults, doc.Files)
	}
	if _, faults := Read("testdata", Options{}); len(faults) != 1 || faults[0].Error() != "testdata: is a directory" {
		t.Errorf("%v", faults)
	}
}

// TestFiles: all that was read, and the folders of patterns.
func TestFiles(t *testing.T) {
	doc, _ := Read("testdata/includes/nginx.conf", Options{})
	want := map[string]bool{"nginx.conf": true, "mime.types": true, "conf.d": true, "conf.d/a.conf": true, "servers.inc": true, "conf.d/b.conf": true, "proxy_params": true}
	for _, f := range doc.Files {
		delete(want, f[len("testdata/includes/"):])
	}
	if len(want) != 0 || len(doc.Files) != 7 {
		t.Errorf("%v; not there: %v", doc.Files, want)
	}
}
