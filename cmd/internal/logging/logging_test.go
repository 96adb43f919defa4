package logging

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
)

func TestLinesAreJSONUnlessOnATerminal(t *testing.T) {
	var out bytes.Buffer
	log, err := New(Options{Level: "info", Format: "auto"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Msg("too quiet")
	log.Info().Str("addr", "127.0.0.1:1").Msg("listening")
	var line struct{ Level, Time, Addr, Message string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q: want one line, of level info", err, out.String())
	}
	at, err := time.Parse(time.RFC3339, line.Time)
	if err != nil || time.Since(at) > time.Minute || line.Addr != "127.0.0.1:1" || line.Message != "listening" {
		t.Errorf("line %+v, %v", line, err)
	}
}

func TestConsole(t *testing.T) {
	var out bytes.Buffer
	log, err := New(Options{Level: "debug", Format: "console"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info().Msg("hello")
	if json.Valid(out.Bytes()) || !bytes.Contains(out.Bytes(), []byte("hello")) || bytes.Contains(out.Bytes(), []byte("\x1b")) {
		t.Errorf("%q: want a line for people, without colours in a file", out.String())
	}
}

func TestUnknownLevel(t *testing.T) {
	if _, err := New(Options{Level: "loud"}, nil); err == nil {
		t.Error("no error")
	}
}
