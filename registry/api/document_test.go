package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

type object = map[string]any

var documents sync.Map // by their text: thousands of answers are held against one

// document is the OpenAPI document as a client gets it.
func document(t testing.TB, h http.Handler) object {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	if doc, ok := documents.Load(w.Body.String()); ok {
		return doc.(object)
	}
	var doc object
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("/openapi.json: %d %v", w.Code, err)
	}
	documents.Store(w.Body.String(), doc)
	return doc
}

func at(v any, path ...string) any {
	for _, p := range path {
		o, _ := v.(object)
		v = o[p]
	}
	return v
}

var pathParam = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// operationOf is the documented operation that a request is for; nil: none, so the answer is the fallback's.
func operationOf(doc object, r *http.Request) any {
	for path, item := range at(doc, "paths").(object) {
		match := regexp.MustCompile("^" + pathParam.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
		if match.MatchString(r.URL.Path) {
			return at(item, strings.ToLower(r.Method))
		}
	}
	return nil
}

// checkAnswer fails the test unless the document has the answer's status, media type and fields.
func checkAnswer(t testing.TB, h http.Handler, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	doc := document(t, h)
	op := operationOf(doc, r)
	if op == nil {
		if r.URL.Path != "/openapi.json" && w.Code != 404 && w.Code != 405 {
			t.Errorf("%s %s is not documented and answers %d", r.Method, r.URL.Path, w.Code)
		}
		return
	}
	response := at(op, "responses", strconv.Itoa(w.Code))
	if response == nil {
		t.Errorf("%s %s: status %d is not documented: %s", r.Method, r.URL, w.Code, w.Body)
		return
	}
	schema := at(response, "content", w.Header().Get("Content-Type"), "schema")
	if schema == nil {
		t.Errorf("%s %s: %d as %q is not documented", r.Method, r.URL, w.Code, w.Header().Get("Content-Type"))
		return
	}
	var body any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	for _, problem := range mismatches(doc, schema, body, "body") {
		t.Errorf("%s %s: the answer is not as documented: %s", r.Method, r.URL, problem)
	}
	if w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		t.Errorf("%s %s: 503 without Retry-After", r.Method, r.URL)
	}
}

// mismatches is the part of JSON Schema that the answers need. Fields that the schema does not name are errors too.
func mismatches(doc object, schema, v any, where string) []string {
	if ref, ok := at(schema, "$ref").(string); ok {
		schema = at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	kinds := at(schema, "type")
	if kinds == nil {
		return nil // anything
	}
	list, ok := kinds.([]any)
	if !ok {
		list = []any{kinds}
	}
	if !slices.Contains(list, any(kindOf(v))) && !(kindOf(v) == "integer" && slices.Contains(list, any("number"))) {
		return []string{fmt.Sprintf("%s is a %s, not %v", where, kindOf(v), kinds)}
	}
	var all []string
	switch v := v.(type) {
	case object:
		for _, name := range asList(at(schema, "required")) {
			if _, ok := v[name.(string)]; !ok {
				all = append(all, where+" lacks "+name.(string))
			}
		}
		for name, value := range v {
			property := at(schema, "properties", name)
			if property == nil {
				property = at(schema, "additionalProperties")
			}
			if property == nil {
				all = append(all, where+" has "+name+", which is not documented")
				continue
			}
			all = append(all, mismatches(doc, property, value, where+"."+name)...)
		}
	case []any:
		for i, value := range v {
			all = append(all, mismatches(doc, at(schema, "items"), value, fmt.Sprintf("%s[%d]", where, i))...)
		}
	case string:
		if enum := asList(at(schema, "enum")); enum != nil && !slices.Contains(enum, any(v)) {
			all = append(all, fmt.Sprintf("%s is %q, not one of %v", where, v, enum))
		}
		if at(schema, "format") == "date-time" {
			if _, err := time.Parse("2006-01-02T15:04:05.000000Z", v); err != nil {
				all = append(all, where+": "+err.Error())
			}
		}
	}
	return all
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func TestTheDocumentIsAsWrittenDown(t *testing.T) {
	h := newAPI(t, brokenStore{}, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	golden(t, "openapi.json", w.Body.Bytes())
}

func TestTheDocumentIsComplete(t *testing.T) {
	doc := document(t, newAPI(t, brokenStore{}, nil))
	if at(doc, "openapi") != "3.1.0" {
		t.Error("openapi is", at(doc, "openapi"))
	}
	routes := []string{
		"GET /v1/services", "GET /v1/services/{service}", "GET /v1/services/{service}/instances", "GET /v1/instances", "GET /v1/instances/{service}/{id}",
		"GET /v1/topology", "GET /v1/topology/versions", "GET /v1/agents", "GET /v1/events", "GET /v1/streams", "GET /v1/rejected", "POST /v1/beats",
		"GET /v1/upstrands", "GET /v1/upstrands/{name}", "POST /v1/topology", "GET /v1/topology/declared", "GET /v1/topology/declared/{name}", "DELETE /v1/topology/declared/{name}",
		"GET /v1/topology/declared/{name}/history", "GET /v1/topology/declared/{name}/history/{revision}",
	}
	var documented []string
	ids := map[any]bool{}
	for path, item := range at(doc, "paths").(object) {
		for method, op := range item.(object) {
			route := strings.ToUpper(method) + " " + path
			documented = append(documented, route)
			for _, problem := range gaps(route, op.(object)) {
				t.Errorf("%s: %s", route, problem)
			}
			if ids[at(op, "operationId")] {
				t.Errorf("%s: operationId %v is taken", route, at(op, "operationId"))
			}
			ids[at(op, "operationId")] = true
		}
	}
	slices.Sort(documented)
	slices.Sort(routes)
	if !slices.Equal(documented, routes) {
		t.Errorf("documented routes:\n%s", strings.Join(documented, "\n"))
	}
	refs := regexp.MustCompile(`"#/components/schemas/([^"]+)"`)
	text, _ := json.Marshal(doc)
	for _, ref := range refs.FindAllSubmatch(text, -1) {
		if at(doc, "components", "schemas", string(ref[1])) == nil {
			t.Errorf("schema %s is referred to and not there", ref[1])
		}
	}
	for name := range at(doc, "components", "schemas").(object) {
		if !strings.Contains(string(text), `"#/components/schemas/`+name+`"`) {
			t.Errorf("schema %s is there and not referred to", name)
		}
	}
}

// gaps are what an operation's description lacks.
func gaps(route string, op object) []string {
	var all []string
	for _, field := range []string{"operationId", "summary", "tags"} {
		if at(op, field) == nil {
			all = append(all, "no "+field)
		}
	}
	for _, p := range asList(op["parameters"]) {
		if at(p, "in") == "query" && (at(p, "description") == nil || at(p, "schema", "type") == nil) {
			all = append(all, fmt.Sprintf("parameter %v has no description or type", at(p, "name")))
		}
	}
	want := []string{"500", "503"}
	if asList(op["parameters"]) != nil {
		want = append(want, "400")
	}
	if strings.Contains(route, "{") || route == "GET /v1/topology" {
		want = append(want, "404")
	}
	for _, status := range want {
		if at(op, "responses", status, "content", "application/problem+json", "schema") == nil {
			all = append(all, "no "+status)
		}
	}
	for status, response := range at(op, "responses").(object) {
		if text, _ := at(response, "description").(string); text == "" {
			all = append(all, status+" has no description")
		}
	}
	return all
}
