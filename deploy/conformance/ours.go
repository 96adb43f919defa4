package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
)

// Ours is what we do in one case instead of what was recorded, on purpose: a step's number, from 1, to the fields that
// differ; for a case that only checks a configuration the number is the word config_ok. A field that is null is not looked
// at.
type Ours map[string]Expect

// At is what is expected of a step: the recording with our fields in place of its own.
func (o Ours) At(step int, recorded Expect) Expect {
	want := maps.Clone(recorded)
	if want == nil {
		want = Expect{}
	}
	maps.Copy(want, o[strconv.Itoa(step)])
	maps.DeleteFunc(want, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return want
}

// Accepted is whether the configuration of a case must be accepted.
func (o Ours) Accepted(v *Vector) bool {
	if text := o["config_ok"]["config_ok"]; text != nil {
		return string(text) == "true"
	}
	return *v.ConfigOK
}

// LoadOurs reads ours.json of a folder, by the ID of the cases; without that file nothing deviates.
func LoadOurs(dir string) (map[string]Ours, error) {
	file := filepath.Join(dir, "ours.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all map[string]Ours
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// NotApplicable is the recorded cases that say nothing about us, by ID, each with its reason.
func NotApplicable() map[string]string {
	return map[string]string{
		"01/two_workers_no_zone": "nginx's workers without a zone keep a state each: we are one process with one state",
	}
}
