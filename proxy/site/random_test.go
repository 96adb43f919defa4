package site

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestAgainstNginxAtRandom makes configurations and requests at random and compares the answers with a real nginx's. It
// needs UPSTRAND_NGINX=PATH; UPSTRAND_ROUNDS says how many configurations (20), UPSTRAND_SEED where to begin (1).
func TestAgainstNginxAtRandom(t *testing.T) {
	nginx := os.Getenv("UPSTRAND_NGINX")
	if nginx == "" {
		t.Skip("needs UPSTRAND_NGINX, the path of an nginx to compare with")
	}
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	first := number("UPSTRAND_SEED", 1)
	for seed := first; seed < first+number("UPSTRAND_ROUNDS", 20); seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			g := generator{rand.New(rand.NewPCG(uint64(seed), 7))}
			conf := g.config()
			w := newWorld(t, conf)
			ask := startNginx(t, nginx, conf)
			for range 60 {
				request := g.request()
				if got, want := w.ask(request), ask(request); got != want {
					t.Errorf("%s: %s, nginx: %s", request, got, want)
				}
			}
			if t.Failed() {
				t.Log(conf)
			}
		})
	}
}

// generator makes configurations over few short names, so that their parts meet.
type generator struct{ *rand.Rand }

func (g generator) of(words ...string) string { return words[g.IntN(len(words))] }

func (g generator) path() string {
	return "/" + g.of("", "a", "b", "a/", "a/b", "b/a", "a/b/", "ab", "b/")
}

func (g generator) text() string {
	return g.of("$uri", "$args", "$1", "$x", "$y$2", "$request_uri", "$m", "$arg_a", "t", "$is_args$args", "$uri|$x", "$n")
}

func (g generator) config() string {
	var b strings.Builder
	b.WriteString("map $uri $m { default d; /a one; ~^/b(.) \"re$1\"; }\nmap $arg_a $n { volatile; \"\" none; ~(.)$ last$1; }\n")
	for i := range 1 + g.IntN(2) {
		fmt.Fprintf(&b, "server { listen 127.0.0.1:8080; server_name %s;\nset $x x0; set $y \"\";\n", []string{"a.example", "b.example *.b.example"}[i])
		for range g.IntN(3) {
			b.WriteString(g.rewriting(2))
		}
		if g.IntN(3) == 0 {
			b.WriteString(g.of("error_page 404 /a/e;", "error_page 404 403 = @n;", "error_page 404 =200 /b?e=1;", "error_page 405 http://o/;", "recursive_error_pages on; error_page 404 /a;") + "\n")
		}
		seen := map[string]bool{}
		for range 1 + g.IntN(6) {
			g.location(&b, "", seen, 2)
		}
		b.WriteString("location @n { return 402 \"n $uri $x\"; }\n}\n")
	}
	return b.String()
}

func (g generator) location(b *strings.Builder, under string, seen map[string]bool, depth int) {
	name, modifier := under+g.path(), g.of("", "", "=", "^~", "~", "~*")
	if under != "" {
		name = strings.TrimSuffix(under, "/") + g.path()
	}
	if strings.HasPrefix(modifier, "~") {
		name = g.of("^/a(.*)$", "^/(.)", "b/?$", "/(?<y>[ab]+)/", "^/b$", ".")
	}
	key := modifier + name
	if modifier == "^~" {
		key = name
	}
	if seen[key] || !strings.HasPrefix(modifier, "~") && !strings.HasPrefix(name, under) {
		return
	}
	seen[key] = true
	fmt.Fprintf(b, "location %s %s {\n", modifier, name)
	for range g.IntN(4) {
		b.WriteString(g.rewriting(2))
	}
	b.WriteString(g.of("", "", "internal;\n", "error_page 404 =201 /b;\n", "error_page 404 405 @n;\n", "error_page 403 = /a?z;\n"))
	switch g.IntN(5) {
	case 0:
		fmt.Fprintf(b, "try_files /none %s;\n", g.of("=404", "=403", "@n", "/b$is_args$args", "$uri/x?$args"))
	case 1, 2:
		if strings.HasPrefix(modifier, "~") {
			b.WriteString("proxy_pass http://u;\n")
		} else {
			fmt.Fprintf(b, "proxy_pass http://u%s;\n", g.of("", "", "/", "/p", "/p/"))
		}
	case 3:
		b.WriteString("return " + g.of("200", "403", "404") + " \"" + g.text() + "\";\n")
	}
	if depth > 0 && modifier == "" && g.IntN(2) == 0 {
		inner := map[string]bool{}
		for range 1 + g.IntN(3) {
			g.location(b, name, inner, depth-1)
		}
	}
	b.WriteString("}\n")
}

func (g generator) rewriting(depth int) string {
	switch g.IntN(7) {
	case 0:
		one, two := g.text(), g.text()
		if strings.ContainsAny(one+two, "mn") && strings.ContainsAny(one+two, "12") {
			return "" // nginx computes $m twice, and its captures change what $1 is meanwhile
		}
		return fmt.Sprintf("set %s \"%s-%s\";\n", g.of("$x", "$y", "$args"), one, two)
	case 1, 2:
		pattern := g.of("^/a(.*)$", "^/b/?(.*)$", "^", "^/(.)(.)?(.*)$", "^/(?<x>a+)", "zzz")
		return fmt.Sprintf("rewrite %s %s%s %s;\n", pattern, g.of("/b$1", "/$2/a", "/a?q=$1", "/b/$1?", "/ab", "/$x$1"), g.of("", "", "?"), g.of("", "", "last", "break", "redirect", "permanent"))
	case 3:
		return g.of("break;\n", "return 404;\n", "return 301 /q$uri;\n", "return 200 \"r "+g.text()+"\";\n", "", "", "", "")
	case 4, 5:
		if depth < 2 {
			return ""
		}
		body := ""
		for range 1 + g.IntN(2) {
			body += g.rewriting(1)
		}
		return fmt.Sprintf("if (%s) {\n%s}\n", g.of("$arg_a", "$arg_a = 1", "$uri ~ ^/a(.)", "$uri !~ b", "$x != x0", "$request_method = POST", "$args ~* (A)", "$n = none"), body)
	}
	return ""
}

func (g generator) request() string {
	path := g.path() + g.of("", "", "a", "/", "%41", "%20", "//b", "/../a", "+", "e", "%25b")
	return g.of("GET", "GET", "GET", "POST", "PUT") + " " + path + g.of("", "", "?a=1", "?a=x&b=%20", "?", "?b") + " " + g.of("a.example", "b.example", "x.b.example", "other")
}
