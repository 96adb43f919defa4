package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

const description = `What the registry of Upstrand knows, what operators declare, and a way to send beats without Kafka.

Lists are paged: an answer with next_cursor has more rows; ask again with the same filters and cursor=NEXT_CURSOR.
Filters that take several values take them separated by commas. Unknown parameters are errors.
Times are RFC 3339 in UTC with µs; names that end in _s are seconds, in _ms milliseconds.
age_s of an instance is measured on the clock of its partition (see /v1/streams), which stands still while the pipeline
from Kafka to the database does; ages of anything else are wall time and say so.
Every error is application/problem+json and says where it is, what is wrong and what is allowed.`

// humaConfig has no page of documentation: huma's loads its scripts from the internet.
func humaConfig() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI:    "3.1.0",
			Info:       &huma.Info{Title: "Upstrand registry", Version: "1", Description: description},
			Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)},
			Tags: []*huma.Tag{
				{Name: "registry", Description: "Services and their instances."},
				{Name: "topology", Description: "What operators declare, what was published to the proxies, and what they serve."},
				{Name: "operations", Description: "What happened, and how the pipeline is doing."},
				{Name: "beats", Description: "Sending."},
			},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
	}
}

// errorTexts say when each error status is given.
var errorTexts = map[int]string{
	http.StatusBadRequest:            "A parameter can't be used; errors says which, why and what is allowed.",
	http.StatusNotFound:              "There is no such thing.",
	http.StatusConflict:              "The declared topology is at another revision than the one expected; detail says by what change.",
	http.StatusForbidden:             "A browser sends this from a page of another site.",
	http.StatusRequestTimeout:        "The body did not arrive in time.",
	http.StatusRequestEntityTooLarge: fmt.Sprintf("The body is above %d bytes or has more than %d beats.", MaxBody, MaxBeats),
	http.StatusUnsupportedMediaType:  "The body is neither application/json nor application/x-ndjson.",
	http.StatusUnprocessableEntity:   "Some beats are invalid: errors has all that is wrong, result what became of each beat. Valid ones beside them are accepted.",
	http.StatusInternalServerError:   "A fault of the registry; its log says why.",
	http.StatusServiceUnavailable:    "The database, or for beats Kafka, can't be reached in time. Try again.",
}

// operation is a route with its errors; every route can fail with 500 and 503.
func operation(method, path, id, tag, summary, text string, errorStatuses ...int) huma.Operation {
	responses := map[string]*huma.Response{}
	for _, status := range append(errorStatuses, http.StatusInternalServerError, http.StatusServiceUnavailable) {
		r := &huma.Response{
			Description: errorTexts[status],
			Content: map[string]*huma.MediaType{
				wire.ProblemType: {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}},
			},
		}
		if status == http.StatusServiceUnavailable {
			r.Headers = map[string]*huma.Param{"Retry-After": {
				Description: "Seconds after which asking again makes sense.", Schema: &huma.Schema{Type: huma.TypeInteger},
			}}
		}
		responses[strconv.Itoa(status)] = r
	}
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary, Description: text, Responses: responses,
		SkipValidateParams: true, // checkParams has done it
	}
}

// finishDocument makes the document whole and returns it as JSON with a stable order.
func finishDocument(document *huma.OpenAPI) ([]byte, error) {
	schemas := document.Components.Schemas
	schemas.Schema(reflect.TypeFor[wire.Problem](), true, "Problem")
	schemas.Schema(reflect.TypeFor[wire.DeclareRequest](), true, "DeclareRequest")
	for _, own := range []string{"ErrorModel", "ErrorDetail"} { // huma's, which no answer has
		delete(schemas.Map(), own)
	}
	for _, s := range schemas.Map() {
		if s.AdditionalProperties == false {
			s.AdditionalProperties = nil // answers may get more fields one day
		}
		for _, property := range s.Properties {
			property.Nullable = property.Nullable && property.Type != huma.TypeArray // lists are empty, never null
		}
	}
	for _, item := range document.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Delete} {
			for _, p := range parametersOf(op) {
				p.Schema.Nullable = false
			}
		}
	}
	describeBeats(document)
	describeDeclare(document)
	text, err := withBeat(document)
	if err != nil {
		return nil, fmt.Errorf("registry api: openapi document: %w", err)
	}
	return append(text, '\n'), nil
}

func parametersOf(op *huma.Operation) []*huma.Param {
	if op == nil {
		return nil
	}
	return op.Parameters
}

// withBeat is the document as JSON with the beat's own schema in it, which says more than huma's type of schemas can.
func withBeat(document *huma.OpenAPI) ([]byte, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	whole, err := objectOf(text)
	if err != nil {
		return nil, err
	}
	beat, err := beatSchema()
	if err != nil {
		return nil, err
	}
	whole["components"].(map[string]any)["schemas"].(map[string]any)["Beat"] = beat
	return json.MarshalIndent(whole, "", "  ")
}

// beatSchema is heartbeat's, less that a port needs an ip: here the sender's address stands in for it.
func beatSchema() (map[string]any, error) {
	beat, err := objectOf([]byte(heartbeat.Schema))
	if err != nil {
		return nil, err
	}
	delete(beat, "$schema") // the document's own draft
	delete(beat, "$id")     // it is another schema now
	if needs, ok := beat["dependentRequired"].(map[string]any); ok {
		delete(needs, "port")
	}
	if otherwise, ok := beat["else"].(map[string]any); ok {
		otherwise["required"] = []string{"port"}
	}
	return beat, nil
}

func objectOf(text []byte) (map[string]any, error) {
	var object map[string]any
	numbers := json.NewDecoder(bytes.NewReader(text)) // which stay as they are written
	numbers.UseNumber()
	err := numbers.Decode(&object)
	return object, err
}

// describeBeats adds the body of POST /v1/beats, which huma does not read, and the schema of a beat.
func describeBeats(document *huma.OpenAPI) {
	beat := &huma.Schema{Ref: "#/components/schemas/Beat"}
	document.Paths["/v1/beats"].Post.RequestBody = &huma.RequestBody{
		Required:    true,
		Description: fmt.Sprintf("At most %d bytes and %d beats.", MaxBody, MaxBeats),
		Content: map[string]*huma.MediaType{
			typeJSON: {Schema: &huma.Schema{OneOf: []*huma.Schema{
				beat, {Type: huma.TypeArray, Items: beat},
			}}},
			typeNDJSON: {Schema: &huma.Schema{Type: huma.TypeString, Description: "A beat a line."}},
		},
	}
}

// describeDeclare adds the body of POST /v1/topology, which huma does not read, and what its errors mean.
func describeDeclare(document *huma.OpenAPI) {
	item := document.Paths["/v1/topology"]
	item.Post.RequestBody = &huma.RequestBody{
		Required:    true,
		Description: fmt.Sprintf("The text has at most %d bytes.", registry.MaxDeclared),
		Content:     map[string]*huma.MediaType{typeJSON: {Schema: &huma.Schema{Ref: "#/components/schemas/DeclareRequest"}}},
	}
	for status, text := range map[int]string{
		http.StatusBadRequest: "The body can't be used; errors says why and what is allowed.", http.StatusRequestEntityTooLarge: "The body is too large.",
		http.StatusUnsupportedMediaType: "The body is not application/json.", http.StatusUnprocessableEntity: faultsText,
	} {
		item.Post.Responses[strconv.Itoa(status)].Description = text
	}
	document.Paths["/v1/topology/declared/{name}"].Delete.Responses["422"].Description = faultsText
}

const faultsText = "The declared topology would have faults: errors has all of them, with FILE:LINE as location. Nothing was changed."
