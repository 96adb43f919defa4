package heartbeat

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// schemaCheck knows the keywords that beat.schema.json uses, and panics on any other, so that none goes unchecked.
type schemaCheck struct{ defs map[string]any }

// allows reports whether v (as encoding/json gives it) is valid under the schema.
func (c schemaCheck) allows(schema map[string]any, v any) bool {
	for keyword, arg := range schema {
		if !c.keyword(schema, keyword, arg, v) {
			return false
		}
	}
	return true
}

func (c schemaCheck) keyword(schema map[string]any, keyword string, arg, v any) bool {
	object, isObject := v.(map[string]any)
	text, isText := v.(string)
	number, isNumber := v.(float64)
	list, isList := v.([]any)
	switch keyword {
	case "$schema", "$id", "title", "description", "default", "$defs", "then", "else", "format":
		return true
	case "$ref":
		return c.allows(c.defs[strings.TrimPrefix(arg.(string), "#/$defs/")].(map[string]any), v)
	case "type":
		switch arg {
		case "object":
			return isObject
		case "string":
			return isText
		case "number":
			return isNumber
		case "integer":
			return isNumber && number == math.Trunc(number)
		case "array":
			return isList
		}
	case "required":
		return !isObject || !slices.ContainsFunc(arg.([]any), func(name any) bool { _, ok := object[name.(string)]; return !ok })
	case "dependentRequired":
		for name, needs := range arg.(map[string]any) {
			if _, ok := object[name]; ok && !c.keyword(schema, "required", needs, v) {
				return false
			}
		}
		return true
	case "properties":
		for name, sub := range arg.(map[string]any) {
			if member, ok := object[name]; ok && !c.allows(sub.(map[string]any), member) {
				return false
			}
		}
		return true
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		for name, member := range object {
			if _, ok := known[name]; !ok && (arg == false || !c.allows(arg.(map[string]any), member)) {
				return false
			}
		}
		return true
	case "propertyNames":
		for name := range object {
			if !c.allows(arg.(map[string]any), name) {
				return false
			}
		}
		return true
	case "maxProperties":
		return float64(len(object)) <= arg.(float64)
	case "items":
		return !slices.ContainsFunc(list, func(e any) bool { return !c.allows(arg.(map[string]any), e) })
	case "maxItems":
		return float64(len(list)) <= arg.(float64)
	case "enum":
		return slices.Contains(arg.([]any), v)
	case "const":
		return arg == v
	case "pattern":
		return !isText || regexp.MustCompile(arg.(string)).MatchString(text)
	case "maxLength":
		return !isText || float64(utf8.RuneCountInString(text)) <= arg.(float64)
	case "minimum":
		return !isNumber || number >= arg.(float64)
	case "maximum":
		return !isNumber || number <= arg.(float64)
	case "not":
		return !c.allows(arg.(map[string]any), v)
	case "anyOf":
		return slices.ContainsFunc(arg.([]any), func(s any) bool { return c.allows(s.(map[string]any), v) })
	case "if":
		branch := "else"
		if c.allows(arg.(map[string]any), v) {
			branch = "then"
		}
		return c.allows(schema[branch].(map[string]any), v)
	}
	panic(fmt.Sprintf("schema keyword %s: %v is not known to this test", keyword, arg))
}

func parseSchema(t *testing.T) (map[string]any, schemaCheck) {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal([]byte(Schema), &schema); err != nil {
		t.Fatal(err)
	}
	return schema, schemaCheck{defs: schema["$defs"].(map[string]any)}
}

// The schema and Decode judge every record of the tables alike, but for what only Decode can see.
func TestSchemaAgreesWithDecode(t *testing.T) {
	schema, check := parseSchema(t)
	judge := func(name, record string, want bool) {
		var v any
		if err := json.Unmarshal([]byte(record), &v); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := check.allows(schema, v); got != want {
			t.Errorf("%s: schema says %v, Decode %v: %s", name, got, want, record)
		}
	}
	for _, c := range goodRecords {
		judge(c.name, c.record, true)
	}
	refused := 0
	for _, c := range badRecords {
		if !c.free {
			refused++
			judge(c.name, c.record, false)
		}
	}
	if refused < 40 {
		t.Errorf("only %d bad records are within the schema's reach", refused)
	}
}

// The schema has the fields of Beat, no other, in its order; and the numbers of the code.
func TestSchemaSaysWhatTheCodeSays(t *testing.T) {
	schema, _ := parseSchema(t)
	properties := schema["properties"].(map[string]any)
	compareNames(t, "beat", reflect.TypeFor[Beat](), properties)
	compareNames(t, "load", reflect.TypeFor[Load](), properties["load"].(map[string]any)["properties"].(map[string]any))
	compareNames(t, "resources", reflect.TypeFor[Resources](), properties["resources"].(map[string]any)["properties"].(map[string]any))
	if names := jsonNames(reflect.TypeFor[Beat]()); !slices.Equal(names, fieldNames[:]) {
		t.Errorf("fields of Beat %v, of Decode %v", names, fieldNames)
	}

	at := func(path ...string) any {
		var v any = schema
		for _, p := range path {
			v = v.(map[string]any)[p]
		}
		return v
	}
	for _, c := range []struct {
		want any
		path []string
	}{
		{"^" + allowedService + "$", []string{"properties", "service", "pattern"}},
		{"^" + allowedID + "$", []string{"properties", "id", "pattern"}},
		{"^" + optional(allowedZone) + "$", []string{"properties", "zone", "pattern"}},
		{"^" + optional(allowedVersion) + "$", []string{"properties", "version", "pattern"}},
		{"^" + allowedTag + "$", []string{"properties", "tags", "items", "pattern"}},
		{"^" + allowedMetaKey + "$", []string{"properties", "meta", "propertyNames", "pattern"}},
		{float64(MaxSerial), []string{"properties", "incarnation", "maximum"}},
		{float64(MaxSerial), []string{"properties", "seq", "maximum"}},
		{float64(MaxPort), []string{"properties", "port", "maximum"}},
		{float64(MaxURL), []string{"properties", "url", "maxLength"}},
		{float64(MaxWeight), []string{"properties", "weight", "maximum"}},
		{float64(MaxConnsLimit), []string{"properties", "max_conns", "maximum"}},
		{float64(MaxFailsLimit), []string{"properties", "max_fails", "maximum"}},
		{float64(MaxTags), []string{"properties", "tags", "maxItems"}},
		{float64(MaxMeta), []string{"properties", "meta", "maxProperties"}},
		{float64(MaxMetaValue), []string{"properties", "meta", "additionalProperties", "maxLength"}},
		{float64(MaxInFlight), []string{"properties", "load", "properties", "in_flight", "maximum"}},
		{float64(MaxRPS), []string{"properties", "load", "properties", "rps", "maximum"}},
		{float64(MaxLatencyMS), []string{"properties", "load", "properties", "latency_ms", "maximum"}},
		{float64(MaxCPU), []string{"properties", "resources", "properties", "cpu", "maximum"}},
		{float64(MaxMemory), []string{"properties", "resources", "properties", "memory", "maximum"}},
		{DefaultScheme, []string{"properties", "scheme", "default"}},
		{float64(DefaultWeight), []string{"properties", "weight", "default"}},
		{float64(DefaultMaxFails), []string{"properties", "max_fails", "default"}},
		{Duration(DefaultFailTimeout).String(), []string{"properties", "fail_timeout", "default"}},
		{Duration(DefaultInterval).String(), []string{"properties", "interval", "default"}},
	} {
		if got := at(c.path...); got != c.want {
			t.Errorf("schema %s is %v, the code says %v", strings.Join(c.path, "."), got, c.want)
		}
	}
	for field, parts := range map[string][]any{
		"fail_timeout": {"%v s to %v h", MinFailTimeout.Seconds(), MaxFailTimeout.Hours()},
		"slow_start":   {"0 to %v h", MaxSlowStart.Hours()},
		"interval":     {"%v ms to %v min", MinInterval.Milliseconds(), MaxInterval.Minutes()},
		"stale_after":  {"%v s to %v h", MinStaleAfter.Seconds(), MaxStaleAfter.Hours()},
		"meta":         {"%v bytes a value and %v bytes", MaxMetaValue, MaxMetaTotal},
	} {
		want := fmt.Sprintf(parts[0].(string), parts[1:]...)
		if got := at("properties", field, "description").(string); !strings.Contains(got, want) {
			t.Errorf("schema %s does not say %q: %s", field, want, got)
		}
	}
	if want := "above " + Duration(MaxStaleLimit*2/3).String(); !strings.Contains(strings.ToLower(at("properties", "interval", "description").(string)), want) {
		t.Errorf("schema interval does not say %q", want)
	}
	if want := fmt.Sprint(MaxRecord); !strings.Contains(at("description").(string), want) {
		t.Errorf("schema does not say %s", want)
	}
	if MinStaleLimit != 3*time.Second || MaxStaleLimit != 5*time.Minute {
		t.Error("the description of stale_after says 3 s and 5 min")
	}
}

// optional is a name's pattern that also lets it be empty.
func optional(pattern string) string { return strings.Replace(pattern, "{1,", "{0,", 1) }

func jsonNames(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func compareNames(t *testing.T, what string, typ reflect.Type, properties map[string]any) {
	t.Helper()
	names := jsonNames(typ)
	for _, name := range names {
		if _, ok := properties[name]; !ok {
			t.Errorf("%s: field %s is not in the schema", what, name)
		}
	}
	if len(names) != len(properties) {
		t.Errorf("%s: %d fields, %d in the schema", what, len(names), len(properties))
	}
}
