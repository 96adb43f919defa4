package site

import (
	"strings"
	"testing"
)

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"/":                "/",
		"/a/b":             "/a/b",
		"/a/b/":            "/a/b/",
		"/a?x=/../y":       "/a",
		"/a#b":             "/a",
		"/a%2Fb":           "/a/b",
		"/a//b///c":        "/a/b/c",
		"//a":              "/a",
		"/./a/./b/.":       "/a/b/",
		"/a/b/../c":        "/a/c",
		"/a/b/..":          "/a/",
		"/a/..":            "/",
		"/a/%2e%2e/b":      "/b",
		"/a/%2E%2e%2fb":    "/b",
		"/a/...":           "/a/...",
		"/a/.b":            "/a/.b",
		"/%41%c3%a9":       "/Aé",
		"/a%3Fb":           "/a?b",
		"/a%23b":           "/a#b",
		"/..":              "!",
		"/../a":            "!",
		"/a/../../b":       "!",
		"/%2e%2e/a":        "!",
		"/a%":              "!",
		"/a%4":             "!",
		"/a%zz":            "!",
		"/a%00":            "!",
		"/a\x00":           "!",
		"":                 "!",
		"*":                "!",
		"a":                "!",
		"/a/b/c/../../../": "/",
	} {
		got, ok := Normalise([]byte(in), true)
		if !ok {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzNormalise: what comes out can't be normalised further, and leads nowhere above the root.
func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"/a/../b", "/%2e%2e/", "//", "/a//./%2f..", "/a?b", "/%25"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, ok := Normalise([]byte(in), true)
		if !ok {
			return
		}
		if !strings.HasPrefix(s, "/") || strings.Contains(s, "//") || strings.Contains(s, "\x00") {
			t.Fatalf("%q -> %q", in, s)
		}
		for _, segment := range strings.Split(s, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q -> %q", in, s)
			}
		}
	})
}
