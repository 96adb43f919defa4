package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Vector is one recorded case.
type Vector struct {
	Theme           string `json:"theme"` // name of its file
	Name            string
	About           string
	HTTPConf        string            `json:"http_conf"`
	ServerConf      string            `json:"server_conf"`
	ServerAddresses map[string]string `json:"server_addresses"` // what stands for s1, s2, … in the real configuration
	Deterministic   bool
	Note, Defect    string
	Workers         int
	ConfigOK        *bool      `json:"config_ok"` // a configuration check, without steps
	Messages        [][]string // what nginx said to it
	ReadTimeout     string     `json:"proxy_read_timeout"`
	HTTPVersion     string     `json:"proxy_http_version"`
	Steps           []Step
}

// ID is the theme's number and the name, such as 02/mf0_never_disabled.
func (v *Vector) ID() string {
	number, _, _ := strings.Cut(v.Theme, "_")
	return number + "/" + v.Name
}

// Step is what happens at once: in the order of the fields, then the requests.
type Step struct {
	Align   bool    `json:"align_second"` // sleep until 60 ms after the start of a second
	Wait    float64 `json:"wait_s"`
	Reload  bool
	Set     map[string]string // behaviour of backends from now on
	Release []string          // held requests that are answered
	Open    []string          // names of requests that are sent and held
	Request *Request
	Repeat  int
	Each    *Each
	Expect  Expect
}

// Request is a template of requests.
type Request struct {
	Method     string            `json:"method"`
	Path       string            `json:"path"`
	Headers    map[string]string `json:"headers"`
	ClientIP   string            `json:"client_ip"`
	RealSource bool              `json:"real_source"` // ClientIP is the address of the connection, else it is in a header
	Body       *Body             `json:"body"`
}

// Body is a request's body: a text, or one repeated and cut to a length.
type Body string

// UnmarshalJSON reads both forms.
func (b *Body) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(b))
	}
	var long struct {
		Fill string
		Len  int
	}
	if err := json.Unmarshal(text, &long); err != nil {
		return err
	}
	if long.Fill == "" {
		return fmt.Errorf("a body of %s: want a text, or fill and len", text)
	}
	*b = Body(strings.Repeat(long.Fill, long.Len/len(long.Fill)+1)[:long.Len])
	return nil
}

// Each sends the template once for each value of a field: path, method, client_ip, header:NAME.
type Each struct {
	Field  string
	Values []string
}

// Expect is what was recorded, by field; lists have one entry for each request.
type Expect map[string]json.RawMessage

// Requests is the requests of the step, written out.
func (s *Step) Requests() ([]Request, error) {
	if s.Request == nil {
		return nil, nil
	}
	if s.Each == nil {
		return slices.Repeat([]Request{*s.Request}, max(s.Repeat, 1)), nil
	}
	out := make([]Request, 0, len(s.Each.Values))
	for _, value := range s.Each.Values {
		q := *s.Request
		name, header := strings.CutPrefix(s.Each.Field, "header:")
		switch {
		case header:
			q.Headers = map[string]string{name: value}
			for k, v := range s.Request.Headers {
				if k != name {
					q.Headers[k] = v
				}
			}
		case s.Each.Field == "path":
			q.Path = value
		case s.Each.Field == "method":
			q.Method = value
		case s.Each.Field == "client_ip":
			q.ClientIP = value
		default:
			return nil, fmt.Errorf("each.field %q: want path, method, client_ip or header:NAME", s.Each.Field)
		}
		out = append(out, q)
	}
	return out, nil
}

// Seconds is how long the case waits by itself.
func (v *Vector) Seconds() (total float64) {
	for _, s := range v.Steps {
		total += s.Wait
		if s.Align {
			total += 0.5
		}
		if s.Reload {
			total++
		}
	}
	return total
}

// Random reports whether the recorded order is one of many: then only counts can be compared, if there are any.
func (v *Vector) Random() (random, counted bool) {
	for _, s := range v.Steps {
		counted = counted || s.Expect["observed_counts"] != nil
	}
	return !v.Deterministic, counted
}

// Load reads every theme's file of a folder, in order.
func Load(dir string) ([]*Vector, error) {
	files, err := filepath.Glob(filepath.Join(dir, "[0-9][0-9]_*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Vector
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var list []*Vector
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, v := range list {
			v.Theme = strings.TrimSuffix(filepath.Base(file), ".json")
		}
		all = append(all, list...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no vectors in %s", dir)
	}
	return all, nil
}
