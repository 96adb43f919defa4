package site

import (
	"net/url"
	"strings"
	"testing"
)

// TestTargetOfConstantProxyPass holds what nginx 1.22 sent for the same configurations.
func TestTargetOfConstantProxyPass(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    pathOf
		want string
	}{
		{"no URI part: as it came", pathOf{raw: "/raw/a%2fb/../c?x", uri: "/raw/c", args: "x", escape: true, location: 5}, "/raw/a%2fb/../c?x"},
		{"no URI part, rewritten", pathOf{uri: "/x/a b?c\"d", escape: true, location: -1}, "/x/a%20b%3Fc%22d"},
		{"location replaced", pathOf{raw: "/a/x", uri: "/a/x", part: "/b/", location: 3}, "/b/x"},
		{"location replaced, not decoded", pathOf{raw: `/a/x"<>y`, uri: `/a/x"<>y`, part: "/b/", location: 3}, `/b/x"<>y`},
		{"location replaced, decoded", pathOf{raw: "/a/x%22%3c", uri: "/a/x\"<>\\^`{|}%?#~'++y", escape: true, part: "/b/", location: 3},
			"/b/x%22%3C%3E%5C%5E%60%7B%7C%7D%25%3F%23~'++y"},
		{"arguments stay as they are", pathOf{raw: "/a/?q=%20\"", uri: "/a/\xe4é", args: "q=%20\"", escape: true, part: "/b/", location: 3}, "/b/%E4%C3%A9?q=%20\""},
		{"by a part without slash", pathOf{raw: "/a/x", uri: "/a/x", part: "/b", location: 3}, "/bx"},
		{"exactly the location", pathOf{raw: "/a", uri: "/a", part: "/b/", location: 2}, "/b/"},
		{"rewritten: the part does not count", pathOf{uri: "/x/abc", escape: true, part: "/q/", location: -1}, "/x/abc"},
		{"redirected to the location", pathOf{uri: "/a/e%20f", escape: true, part: "/b/", location: 3}, "/b/e%2520f"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := string(tc.p.append(nil)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// FuzzProxyTarget: whatever the decoded path is, what is sent stays within one request line and means that path.
func FuzzProxyTarget(f *testing.F) {
	for _, s := range []string{"/a/x", "/a/ \r\n%?#", "/a/\x00\xff\"", "/a", "/"} {
		f.Add(s, "x=1", "/b/")
	}
	f.Fuzz(func(t *testing.T, uri, args, part string) {
		if !strings.HasPrefix(uri, "/") || strings.ContainsAny(part+args, " %\r\n\x00?#") || part != "" && part[0] != '/' {
			t.Skip()
		}
		p := pathOf{uri: uri, args: args, escape: true, part: part, location: min(3, len(uri))}
		got := string(p.append(nil))
		path, query, _ := strings.Cut(got, "?")
		want := uri
		if part != "" {
			want = part + uri[p.location:]
		}
		if decoded, err := url.PathUnescape(path); err != nil || decoded != want || query != args {
			t.Errorf("%q: path %q (%v), want %q; arguments %q, want %q", got, decoded, err, want, query, args)
		}
		if i := strings.IndexFunc(path[len(part):min(len(path), len(path))], func(r rune) bool { return r <= ' ' }); part == "" && i >= 0 {
			t.Errorf("%q can't stand in a request line", got)
		}
		if made := string(appendTarget(nil, uri)); strings.ContainsAny(made, " \r\n\x00\t") {
			t.Errorf("%q can't stand in a request line", made)
		}
	})
}
