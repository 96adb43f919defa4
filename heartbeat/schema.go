package heartbeat

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of a beat. A few rules that it can't say stand in its descriptions; Decode
// keeps them all.
//
//go:embed beat.schema.json
var Schema string
