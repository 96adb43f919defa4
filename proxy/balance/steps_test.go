package balance_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

type vectorStep struct {
	Align   bool    `json:"align_second"`
	Wait    float64 `json:"wait_s"`
	Reload  bool
	Set     map[string]string
	Release []string
	Open    []string
	Repeat  int
	Request *struct {
		Method, Path string
		Headers      map[string]string
		ClientIP     string `json:"client_ip"`
	}
	Each *struct {
		Field  string
		Values []string
	}
	Expect vectorExpect
}

type vectorExpect struct {
	Peers          [][]string
	Status         []any
	StatusAll      *int                  `json:"status_all"`
	UpstreamStatus [][]int               `json:"upstream_status"`
	Headers        map[string][][]string `json:"response_headers"`
	Counts         map[string]int        `json:"observed_counts"`
	Theory         map[string]float64    `json:"theoretical_probabilities"`
}

// ask is one request of a step.
type ask struct {
	method, path, client string
	headers              map[string]string
}

func (s *vectorStep) requests() []ask {
	if s.Request == nil {
		return nil
	}
	base := ask{s.Request.Method, s.Request.Path, s.Request.ClientIP, s.Request.Headers}
	if base.client == "" {
		base.client = "127.0.0.1"
	}
	if s.Each != nil {
		var out []ask
		for _, value := range s.Each.Values {
			out = append(out, base.with(s.Each.Field, value))
		}
		return out
	}
	out := make([]ask, max(s.Repeat, len(s.Open), 1))
	for i := range out {
		out[i] = base
	}
	return out
}

func (a ask) with(field, value string) ask {
	name, isHeader := strings.CutPrefix(field, "header:")
	switch {
	case isHeader:
		headers := map[string]string{name: value}
		for k, v := range a.headers {
			if k != name {
				headers[k] = v
			}
		}
		a.headers = headers
	case field == "method":
		a.method = value
	case field == "path":
		a.path = value
	case field == "client_ip":
		a.client = value
	default:
		panic("each " + field)
	}
	return a
}

var variableRE = regexp.MustCompile(`\$\{?(\w+)\}?`)

// expand fills in the variables of a text that stand for something of the request; answered is what the answer set as
// cookies, as in K=V.
func (a ask) expand(text string, answered []string) string {
	return variableRE.ReplaceAllStringFunc(text, func(found string) string {
		value, _ := a.variable(variableRE.FindStringSubmatch(found)[1], answered)
		return value
	})
}

// variable gives a variable's value, and whether it is one that this replay knows.
func (a ask) variable(name string, answered []string) (value string, known bool) {
	path, query, _ := strings.Cut(a.path, "?")
	switch name {
	case "remote_addr":
		return a.client, true
	case "request_method":
		return a.method, true
	case "request_uri":
		return a.path, true
	case "args", "query_string":
		return query, true
	case "uri":
		plain, _ := url.PathUnescape(path)
		return plain, true
	}
	if rest, ok := strings.CutPrefix(name, "arg_"); ok {
		return valueOf(strings.Split(query, "&"), rest), true
	}
	if rest, ok := strings.CutPrefix(name, "cookie_"); ok {
		return valueOf(strings.Split(a.headers["Cookie"], "; "), rest), true
	}
	if rest, ok := strings.CutPrefix(name, "upstream_cookie_"); ok {
		return valueOf(answered, rest), true
	}
	if rest, ok := strings.CutPrefix(name, "http_"); ok {
		for k, v := range a.headers {
			if strings.EqualFold(strings.ReplaceAll(k, "-", "_"), rest) {
				return v, true
			}
		}
		return "", true
	}
	return "", false
}

// unknownVariable is one in the upstream's lines that this replay can't fill in; empty: there is none.
func (u *vectorUpstream) unknownVariable() string {
	for _, d := range u.Directives {
		for _, found := range variableRE.FindAllStringSubmatch(strings.Join(d, " "), -1) {
			if _, known := (ask{}).variable(found[1], nil); !known {
				return found[1]
			}
		}
	}
	return ""
}

// valueOf gives the value of the first pair with the name.
func valueOf(pairs []string, name string) string {
	for _, pair := range pairs {
		if k, v, ok := strings.Cut(pair, "="); ok && k == name {
			return v
		}
	}
	return ""
}

func (s *vectorStep) wantStatus(i int) string {
	switch {
	case s.Expect.StatusAll != nil:
		return strconv.Itoa(*s.Expect.StatusAll)
	case s.Expect.Status == nil:
		return ""
	}
	return fmt.Sprint(s.Expect.Status[i])
}

// wantUpstreamStatus is the status of each attempt; where none are recorded, there was one attempt with 200 each. Nil:
// not recorded.
func (s *vectorStep) wantUpstreamStatus(i int) []int {
	if s.Expect.UpstreamStatus == nil {
		if strings.HasPrefix(s.Expect.Peers[i][0], "!") {
			return nil
		}
		return []int{200}
	}
	return s.Expect.UpstreamStatus[i]
}
