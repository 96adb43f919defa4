package wire

import "strings"

// ProblemType is the media type of an error.
const ProblemType = "application/problem+json"

// Problem is every error of the API (RFC 9457): what went wrong and, one by one, where, what and what is allowed.
type Problem struct {
	Title  string       `json:"title" doc:"Text of the HTTP status."`
	Status int          `json:"status" doc:"HTTP status."`
	Detail string       `json:"detail" doc:"What went wrong, for people."`
	Errors []FieldError `json:"errors,omitempty" doc:"All that is wrong, one by one."`
	Result *BeatsAnswer `json:"result,omitempty" doc:"Only of POST /v1/beats: what became of each beat; good ones beside bad ones are accepted."`
}

// FieldError is one thing that is wrong.
type FieldError struct {
	Location string `json:"location" example:"query.limit" doc:"path.NAME, query.NAME, header.NAME, body, body.FIELD, body[i].field for the i-th beat, counted from 0, or FILE:LINE of a declared file."`
	Message  string `json:"message" doc:"What is wrong with it."`
	Reason   string `json:"reason,omitempty" example:"bad_port" doc:"Code of what is wrong with a beat; absent for anything else."`
	Value    string `json:"value,omitempty" doc:"What was given, cut to 200 bytes."`
	Allowed  string `json:"allowed,omitempty" doc:"What would be right, and nothing else."`
}

// Error is the problem on one line.
func (p *Problem) Error() string {
	if len(p.Errors) == 0 {
		return p.Detail
	}
	parts := make([]string, 0, len(p.Errors))
	for _, e := range p.Errors {
		part := e.Location + ": " + e.Message
		if e.Value != "" {
			part += ", given " + e.Value
		}
		if e.Allowed != "" {
			part += " (allowed: " + e.Allowed + ")"
		}
		parts = append(parts, part)
	}
	return p.Detail + ": " + strings.Join(parts, "; ")
}

// What became of a posted beat.
const (
	BeatAccepted = "accepted" // it is in the heartbeat topic
	BeatInvalid  = "invalid"  // it can never be accepted as it is
	BeatFailed   = "failed"   // Kafka did not take it in time; sending it again is safe
)

// BeatResult is what became of one posted beat.
type BeatResult struct {
	Index   int    `json:"index" doc:"Its place in the request, from 0."`
	Service string `json:"service,omitempty"`
	ID      string `json:"id,omitempty"`
	Result  string `json:"result" enum:"accepted,invalid,failed" doc:"accepted: in the heartbeat topic; invalid: see errors; failed: not written in time, sending it again is safe."`
	Reason  string `json:"reason,omitempty" example:"bad_port" doc:"Code of an invalid one."`
}

// BeatsAnswer is what became of a request's beats.
type BeatsAnswer struct {
	Accepted int          `json:"accepted"`
	Invalid  int          `json:"invalid"`
	Failed   int          `json:"failed"`
	Beats    []BeatResult `json:"beats" doc:"In the order of the request."`
}
