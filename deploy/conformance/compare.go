package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Compare says where what was seen differs from what is wanted. Fields that can't be seen from outside are left out.
func Compare(want Expect, got map[string]any, v *Vector) (diffs []string) {
	if want["observed_counts"] != nil {
		return counts(want, got["peers"].([][]string))
	}
	if want["upstream_status"] == nil && want["peers"] != nil {
		diffs = answered(want, got)
	}
	for field, text := range want {
		seen, known := got[field]
		if !known || field == "error_log" {
			continue
		}
		w, g := plain(text), plain(seen)
		d := ""
		switch field {
		case "status_all":
			d = all(w, g)
		case "body":
			d = lists(w, g, func(w, g any) bool { return sameBody(w.(string), g.(string), v) })
		case "response_headers":
			d = fields(w, g)
		case "received":
			d = lists(w, g, func(w, g any) bool { return reflect.DeepEqual(withoutReused(w, v), withoutReused(g, v)) })
		default:
			d = lists(w, g, reflect.DeepEqual)
		}
		if d != "" {
			diffs = append(diffs, field+d)
		}
	}
	return diffs
}

// answered looks at statuses that the recording leaves out: one attempt with 200.
func answered(want Expect, got map[string]any) (diffs []string) {
	statuses, ok := got["upstream_status"].([][]int)
	peers, _ := plain(want["peers"]).([]any)
	if !ok {
		return nil
	}
	for i, p := range peers {
		one, _ := p.([]any)
		if len(one) == 1 && i < len(statuses) && !strings.HasPrefix(one[0].(string), "!") && !slices.Equal(statuses[i], []int{200}) {
			return []string{fmt.Sprintf("upstream_status[%d]: want [200], got %v", i, statuses[i])}
		}
	}
	return nil
}

// plain is any value as JSON has it.
func plain(value any) (out any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return err.Error()
	}
	return out
}

func all(want, got any) string {
	for i, g := range got.([]any) {
		if g != want {
			return fmt.Sprintf("[%d]: want %v for each, got %v", i, want, g)
		}
	}
	return ""
}

// lists compares entry by entry and shows the first that differs, with what follows.
func lists(want, got any, same func(w, g any) bool) string {
	w, okW := want.([]any)
	g, okG := got.([]any)
	if !okW || !okG {
		return fmt.Sprintf(": want %v, got %v", want, got)
	}
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || !same(w[i], g[i]) {
			const shown = 8
			return fmt.Sprintf("[%d]: want %s, got %s", i, show(w, i, shown), show(g, i, shown))
		}
	}
	return ""
}

func show(list []any, from, n int) string {
	from = min(from, len(list))
	text, _ := json.Marshal(list[from:min(from+n, len(list))])
	return string(text)
}

// sameBody takes any two built-in error pages for the same: their words are each server's own.
func sameBody(want, got string, v *Vector) bool {
	page := func(s string) bool {
		return strings.HasPrefix(s, "<error page") || strings.Contains(strings.ToLower(s), "<html")
	}
	if page(want) {
		return v.ServerAddresses[got] == ""
	}
	return want == got
}

var date = regexp.MustCompile(`(?i)expires=[A-Z][a-z]{2}, [^;]*`)

// fields compares header fields, but Location (it names the port of the recording), and dates by form alone.
func fields(want, got any) string {
	for name, values := range want.(map[string]any) {
		if strings.EqualFold(name, "Location") {
			continue
		}
		undated := func(v any) string {
			text, _ := json.Marshal(v)
			return date.ReplaceAllString(string(text), "expires=DATE")
		}
		g := got.(map[string]any)[name]
		if d := lists(values, g, func(w, g any) bool { return undated(w) == undated(g) }); d != "" {
			return " " + name + d
		}
	}
	return ""
}

// withoutReused drops what only theme 14 recorded.
func withoutReused(list any, v *Vector) any {
	if strings.HasPrefix(v.Theme, "14") {
		return list
	}
	for _, entry := range list.([]any) {
		delete(entry.(map[string]any), "reused")
	}
	return list
}

// counts compares shares of random picks, with a tolerance of five standard deviations.
func counts(want Expect, peers [][]string) (diffs []string) {
	var probabilities, observed map[string]float64
	_ = json.Unmarshal(want["theoretical_probabilities"], &probabilities)
	_ = json.Unmarshal(want["observed_counts"], &observed)
	wider := 1.0
	if probabilities == nil { // two samples that both scatter
		wider, probabilities = 2, map[string]float64{}
		total := 0.0
		for _, c := range observed {
			total += c
		}
		for k, c := range observed {
			probabilities[k] = c / total
		}
	}
	got := map[string]float64{}
	for _, p := range peers {
		k := strings.Join(p, ",")
		got[k]++
		if _, known := probabilities[k]; !known {
			probabilities[k] = 0
		}
	}
	n := float64(len(peers))
	for k, p := range probabilities {
		sd := math.Sqrt(max(p*(1-p), 1e-4)*n) * math.Sqrt(wider)
		if math.Abs(got[k]-p*n) > 5*sd {
			diffs = append(diffs, fmt.Sprintf("share of %q: want about %.1f of %.0f, got %.0f", k, p*n, n, got[k]))
		}
	}
	return diffs
}
