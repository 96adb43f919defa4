package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/upstrand/upstrand/heartbeat"
	"github.com/upstrand/upstrand/registry/wire"
)

// bodyTime bounds the reading of a body.
const bodyTime = 15 * time.Second

// The media types of a body. A form or plain text, which any web page can make a browser post, is not among them.
const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

type beatsInput struct {
	request *http.Request
	writer  http.ResponseWriter
}

// Resolve keeps the request: the body is read here and not by huma, since it is no one JSON value.
func (in *beatsInput) Resolve(ctx huma.Context) []error {
	in.request, in.writer = humago.Unwrap(ctx)
	return nil
}

func (a *api) postBeats(ctx context.Context, in *beatsInput) (*output[wire.BeatsAnswer], error) {
	body, ndjson, p := readBody(in.writer, in.request)
	if p != nil {
		return nil, p
	}
	raws, p := split(body, ndjson)
	if p != nil {
		return nil, p
	}
	b := decodeBeats(raws, peer(in.request))
	a.publish(ctx, b)
	for _, r := range b.answer.Beats {
		a.metrics.beats.WithLabelValues(r.Result).Inc()
	}
	if p := b.problem(); p != nil {
		return nil, p
	}
	return &output[wire.BeatsAnswer]{b.answer}, nil
}

func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ndjson bool, p *problem) {
	given := r.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(given)
	if err != nil || (media != typeJSON && media != typeNDJSON) {
		return nil, false, newProblem(http.StatusUnsupportedMediaType, "the body's type is not one that beats come in", wire.FieldError{
			Location: "header.Content-Type", Message: "is not known", Value: shown(given),
			Allowed: typeJSON + " for a beat or an array of beats, " + typeNDJSON + " for a beat a line (curl: -H 'Content-Type: " + typeJSON + "')",
		})
	}
	body, p = readAll(w, r, MaxBody, fmt.Sprintf("up to %d bytes and %d beats", MaxBody, MaxBeats))
	return body, media == typeNDJSON, p
}

// readJSON reads a body that must say it is JSON.
func readJSON(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *problem) {
	given := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(given); err != nil || media != typeJSON {
		return nil, newProblem(http.StatusUnsupportedMediaType, "the body is not JSON, or does not say so", wire.FieldError{
			Location: "header.Content-Type", Message: "is not known", Value: shown(given), Allowed: typeJSON,
		})
	}
	return readAll(w, r, most, fmt.Sprintf("up to %d bytes", most))
}

// readAll reads a body of at most so many bytes.
func readAll(w http.ResponseWriter, r *http.Request, most int64, allowed string) ([]byte, *problem) {
	// Without effect where the connection can't do it, such as in tests.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, newProblem(http.StatusRequestEntityTooLarge, "the body is too large", wire.FieldError{
			Location: "body", Message: "is too large", Allowed: allowed,
		})
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newProblem(http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive within %v", bodyTime))
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, "the body can't be read: "+err.Error())
	}
	return body, nil
}

// split cuts a body into beats, each still as sent. An array that is no JSON is refused as a whole, since it can't be
// told where its beats are; lines are cut at their ends, whatever is in them.
func split(body []byte, ndjson bool) ([]json.RawMessage, *problem) {
	body = bytes.TrimSpace(body)
	var raws []json.RawMessage
	switch {
	case ndjson:
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				raws = append(raws, line)
			}
		}
		if len(raws) > 1 && json.Valid(body) {
			return nil, otherType("is one JSON value over several lines and comes as "+typeNDJSON, body, typeJSON+" for a beat or an array of beats")
		}
	case len(body) > 0 && body[0] == '[':
		if err := json.Unmarshal(body, &raws); err != nil {
			return nil, newProblem(http.StatusUnprocessableEntity, "the body is no JSON array; nothing was accepted", wire.FieldError{
				Location: "body", Message: err.Error(), Value: shown(string(body)), Allowed: "[BEAT, BEAT, …]",
			})
		}
	case severalBeats(body):
		return nil, otherType("has several beats and comes as "+typeJSON, body, typeNDJSON+" for a beat a line, or [BEAT, BEAT, …] as "+typeJSON)
	case len(body) > 0:
		raws = []json.RawMessage{body}
	}
	switch {
	case len(raws) == 0:
		return nil, newProblem(http.StatusUnprocessableEntity, "the body has no beat", wire.FieldError{
			Location: "body", Message: "is empty", Value: shown(string(body)), Allowed: "a beat, [BEAT, BEAT, …], or a beat a line as " + typeNDJSON,
		})
	case len(raws) > MaxBeats:
		return nil, newProblem(http.StatusRequestEntityTooLarge, "the body has too many beats; nothing was accepted", wire.FieldError{
			Location: "body", Message: fmt.Sprintf("has %d beats", len(raws)), Allowed: fmt.Sprintf("up to %d", MaxBeats),
		})
	}
	return raws, nil
}

// severalBeats reports whether a body is a whole object with another one after it: lines of beats.
func severalBeats(body []byte) bool {
	if len(body) == 0 || body[0] != '{' {
		return false
	}
	values := json.NewDecoder(bytes.NewReader(body))
	var first json.RawMessage
	if values.Decode(&first) != nil {
		return false
	}
	rest := bytes.TrimSpace(body[values.InputOffset():])
	return len(rest) > 0 && rest[0] == '{'
}

// otherType is the answer to a body that belongs to the other of the two types.
func otherType(message string, body []byte, allowed string) *problem {
	return newProblem(http.StatusUnprocessableEntity, "the body is of another type than it says; nothing was accepted", wire.FieldError{
		Location: "body", Message: message, Value: shown(string(body)), Allowed: allowed,
	})
}

// peer is the address that the request comes from; invalid when there is none, as over a Unix socket. What a proxy in
// between says of it is not believed: anyone can send such a header.
func peer(r *http.Request) netip.Addr {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Addr().Unmap().WithZone("")
}

// beats is a request's beats on their way.
type beats struct {
	answer   wire.BeatsAnswer
	errs     []wire.FieldError
	messages []Message // of the valid ones
	places   []int     // of each message in answer.Beats
}

func decodeBeats(raws []json.RawMessage, from netip.Addr) *beats {
	b := &beats{answer: wire.BeatsAnswer{Beats: make([]wire.BeatResult, len(raws))}}
	for i, raw := range raws {
		result := &b.answer.Beats[i]
		result.Index = i
		beat, err := heartbeat.Decode(withAddress(raw, from))
		if err == nil && heartbeat.IsAgent(beat.Service) {
			err = ours(beat.Service)
		}
		var value []byte
		if err == nil {
			value, err = beat.Encode()
		}
		if err != nil {
			b.invalid(result, raw, err)
			continue
		}
		result.Service, result.ID = beat.Service, beat.ID
		b.messages = append(b.messages, Message{Key: beat.Key(), Value: value})
		b.places = append(b.places, i)
	}
	return b
}

// ours refuses a beat of a part of Upstrand itself. These beat over Kafka, and what they report of their topology is
// believed when the next version is numbered, so it is not for everybody who may post.
func ours(service string) error {
	return &heartbeat.InvalidError{Reason: heartbeat.BadService, Problems: []heartbeat.Problem{{
		Field: "service", Reason: heartbeat.BadService, Message: "belongs to Upstrand itself, whose parts beat over Kafka only",
		Value: strconv.Quote(service), Allowed: "a name that does not begin with " + heartbeat.AgentPrefix,
	}}}
}

// withAddress puts the sender's address into a beat that has a port and no ip. It adds text in front of what was sent,
// which stays as it is, so that what is wrong with it is still found.
func withAddress(raw json.RawMessage, from netip.Addr) []byte {
	if !from.IsValid() {
		return raw
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields["port"] == nil {
		return raw
	}
	if _, given := fields["ip"]; given {
		return raw
	}
	return append([]byte(`{"ip":"`+from.String()+`",`), bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("{"))...)
}

// invalid notes all that is wrong with a beat, and who it says it is, as far as that can be read.
func (b *beats) invalid(result *wire.BeatResult, raw json.RawMessage, err error) {
	b.answer.Invalid++
	result.Result = wire.BeatInvalid
	var who struct{ Service, ID any }
	_ = json.Unmarshal(raw, &who)
	result.Service, result.ID = named(who.Service), named(who.ID)
	location := fmt.Sprintf("body[%d]", result.Index)
	var invalid *heartbeat.InvalidError
	if !errors.As(err, &invalid) {
		b.errs = append(b.errs, wire.FieldError{Location: location, Message: err.Error()})
		return
	}
	result.Reason = string(invalid.Reason)
	for _, p := range invalid.Problems {
		where := location
		if p.Field != "" {
			where += "." + p.Field
		}
		b.errs = append(b.errs, wire.FieldError{Location: where, Message: p.Message, Reason: string(p.Reason), Value: shown(p.Value), Allowed: p.Allowed})
	}
	if invalid.Omitted > 0 {
		b.errs = append(b.errs, wire.FieldError{Location: location, Message: fmt.Sprintf("%d further problems", invalid.Omitted)})
	}
}

func named(v any) string {
	s, _ := v.(string)
	return shown(s)
}

// publish writes the valid beats and notes what became of each.
func (a *api) publish(ctx context.Context, b *beats) {
	if len(b.messages) == 0 {
		return
	}
	failed := a.send(ctx, b.messages)
	for i, place := range b.places {
		if failed != nil && (i >= len(failed) || failed[i] != nil) {
			b.answer.Failed++
			b.answer.Beats[place].Result = wire.BeatFailed
			continue
		}
		b.answer.Accepted++
		b.answer.Beats[place].Result = wire.BeatAccepted
	}
}

// send returns what Publish does; an empty slice says that none was written.
func (a *api) send(ctx context.Context, messages []Message) []error {
	if a.cfg.Publisher == nil {
		return []error{}
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.PublishTimeout)
	defer cancel()
	failed := a.cfg.Publisher.Publish(ctx, messages)
	if failed != nil {
		a.publishFailed(failed, len(messages))
	}
	return failed
}

// problem is the answer when not all were accepted, else nil. That some failed is said first: sending the same again
// will tell about the invalid ones.
func (b *beats) problem() *problem {
	var p *problem
	said := []string{fmt.Sprintf("%d accepted", b.answer.Accepted)}
	if b.answer.Invalid > 0 {
		said = append(said, fmt.Sprintf("%d invalid", b.answer.Invalid))
	}
	if b.answer.Failed > 0 {
		said = append(said, fmt.Sprintf("%d not written in time", b.answer.Failed))
	}
	detail := fmt.Sprintf("of %d: %s", len(b.answer.Beats), strings.Join(said, ", "))
	switch {
	case b.answer.Failed > 0:
		p = newProblem(http.StatusServiceUnavailable, "Kafka did not take the beats ("+detail+"); sending them again is safe", b.errs...).retryAfter(2)
	case b.answer.Invalid > 0:
		p = newProblem(http.StatusUnprocessableEntity, "some beats are invalid ("+detail+")", b.errs...)
	default:
		return nil
	}
	p.Result = &b.answer
	return p
}
