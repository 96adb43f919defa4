package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/upstrand/upstrand/confgen/plan"
	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

// DefaultDeclared is the file that a request without a name is about.
const DefaultDeclared = "main"

// A change is planned against the registry as it is and carried out for the very declared topology that it was planned
// against. When another change comes in between and the caller did not mind, it is planned again, so often at most.
const declareTries = 5

type declareInput struct {
	request *http.Request
	writer  http.ResponseWriter
}

// Resolve keeps the request: the body is read here, so that errors are the API's own.
func (in *declareInput) Resolve(ctx huma.Context) []error {
	in.request, in.writer = humago.Unwrap(ctx)
	return nil
}

func (a *api) declare(ctx context.Context, in *declareInput) (*output[wire.DeclareAnswer], error) {
	req, p := readDeclare(in.writer, in.request)
	if p != nil {
		return nil, p
	}
	return a.change(ctx, registry.Declare{Name: req.Name, Text: req.Text, Author: req.Author, Comment: req.Comment, Expected: req.Expected}, req.DryRun)
}

type undeclareInput struct {
	DeclaredName
	Author   string `query:"author" required:"true" maxLength:"128" doc:"Who asks, such as USER@HOST."`
	Comment  string `query:"comment" maxLength:"1024" doc:"Why."`
	DryRun   string `query:"dry_run" enum:"true,false" doc:"true: say what would happen, and change nothing."`
	Expected int64  `query:"expected_revision" minimum:"0" doc:"Revision of the declared topology that the deletion was made for; when it is at another one, 409."`
	Given
}

func (a *api) undeclare(ctx context.Context, in *undeclareInput) (*output[wire.DeclareAnswer], error) {
	d := registry.Declare{Name: in.Name, Delete: true, Author: in.Author, Comment: in.Comment}
	if in.has("expected_revision") {
		d.Expected = &in.Expected
	}
	if strings.TrimSpace(in.Author) == "" {
		return nil, badRequest([]wire.FieldError{{Location: "query.author", Message: "is missing", Allowed: "who asks, such as USER@HOST"}})
	}
	return a.change(ctx, d, in.DryRun == "true")
}

// readDeclare reads a request strictly, and says all that is wrong with it at once.
func readDeclare(w http.ResponseWriter, r *http.Request) (wire.DeclareRequest, *problem) {
	var req wire.DeclareRequest
	body, p := readJSON(w, r, 8*registry.MaxDeclared) // in JSON a byte may take six
	if p != nil {
		return req, p
	}
	if !utf8.Valid(body) { // the decoder would put other characters in its place, and something else would be declared
		return req, newProblem(http.StatusBadRequest, "the body can't be used", wire.FieldError{
			Location: "body", Message: "is not UTF-8", Allowed: "JSON in UTF-8",
		})
	}
	given := struct {
		*wire.DeclareRequest
		Text *string `json:"text"` // to tell an empty one from none
	}{DeclareRequest: &req}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	err := strict.Decode(&given)
	if err == nil {
		if _, more := strict.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more follows after the object")
		}
	}
	if err != nil {
		return req, newProblem(http.StatusBadRequest, "the body can't be used", wire.FieldError{
			Location: "body", Message: strings.TrimPrefix(err.Error(), "json: "), Value: shown(string(body)),
			Allowed: `{"text": …, "author": …} and name, comment, dry_run, expected_revision`,
		})
	}
	if req.Name == "" {
		req.Name = DefaultDeclared
	}
	errs := declareErrors(&req)
	if given.Text == nil {
		errs = append(errs, wire.FieldError{Location: "body.text", Message: "is missing", Allowed: "the file's text"})
	} else if req.Text = *given.Text; len(req.Text) > registry.MaxDeclared {
		errs = append(errs, wire.FieldError{Location: "body.text", Message: "is too large", Allowed: fmt.Sprintf("up to %d bytes", registry.MaxDeclared)})
	}
	if len(errs) > 0 {
		return req, newProblem(http.StatusBadRequest, "the body can't be used", errs...)
	}
	if strings.TrimSpace(req.Text) == "" { // more likely a slip, such as a pipe whose first part failed
		return req, newProblem(http.StatusUnprocessableEntity, fmt.Sprintf("file %s can't be declared", req.Name), wire.FieldError{
			Location: "body.text", Message: "is empty: all that the file declares would go",
			Allowed: "upstream, upstrand, server; DELETE /v1/topology/declared/" + req.Name + " takes a file out",
		})
	}
	return req, nil
}

func declareErrors(req *wire.DeclareRequest) (errs []wire.FieldError) {
	wrong := func(field, message, value, allowed string) {
		errs = append(errs, wire.FieldError{Location: "body." + field, Message: message, Value: shown(value), Allowed: allowed})
	}
	if !registry.IsServiceName(req.Name) {
		wrong("name", "can't be the name of a file", req.Name, allowedDeclared)
	}
	if strings.TrimSpace(req.Author) == "" || utf8.RuneCountInString(req.Author) > 128 {
		wrong("author", "is missing or too long", req.Author, "who asks, such as USER@HOST, in up to 128 characters")
	}
	if utf8.RuneCountInString(req.Comment) > 1024 {
		wrong("comment", "is too long", req.Comment, "up to 1024 characters")
	}
	if req.Expected != nil && *req.Expected < 0 {
		wrong("expected_revision", "is negative", strconv.FormatInt(*req.Expected, 10), "a revision of the declared topology, 0 for none")
	}
	return errs
}

const allowedDeclared = "up to 64 of a-z, 0-9, dot, _ and -, with a letter or digit at both ends"

// change plans a change and, unless it is a dry run, carries it out.
func (a *api) change(ctx context.Context, d registry.Declare, dryRun bool) (*output[wire.DeclareAnswer], error) {
	if a.cfg.Declarer == nil {
		return nil, newProblem(http.StatusServiceUnavailable, "this registry takes no declarations").retryAfter(60)
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	select { // a plan reads the whole registry
	case a.planning <- struct{}{}:
		defer func() { <-a.planning }()
	case <-ctx.Done():
		return nil, a.unreadable(ctx, ctx.Err())
	}
	for try := 1; ; try++ {
		answer, err := a.tryChange(ctx, d, dryRun)
		if errors.Is(err, registry.ErrConflict) && d.Expected == nil && try < declareTries {
			continue
		}
		if err != nil {
			return nil, a.notDeclared(ctx, d, err)
		}
		return &output[wire.DeclareAnswer]{*answer}, nil
	}
}

func (a *api) tryChange(ctx context.Context, d registry.Declare, dryRun bool) (*wire.DeclareAnswer, error) {
	snap, err := a.cfg.Declarer.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	now := snap.Declared
	if d.Expected != nil && *d.Expected != now.Revision {
		return nil, &registry.ConflictError{Expected: *d.Expected, Last: now.Last}
	}
	files, known := replaced(now.Files, d)
	if d.Delete && !known {
		return nil, registry.ErrNotFound
	}
	p := plan.Make(snap, files)
	if len(p.Faults) > 0 {
		return nil, faulty(d, p)
	}
	answer := answerOf(p)
	answer.Revision, answer.Registry = now.Revision, snap.Revision
	if dryRun {
		return answer, nil
	}
	d.Expected, d.Detail = &now.Revision, eventDetail(d.Name, answer)
	done, changed, err := a.cfg.Declarer.Declare(ctx, d)
	if err != nil {
		return nil, err
	}
	if answer.Applied = changed; changed {
		answer.Revision, answer.Registry = done.Revision, done.RegistryRevision
	}
	return answer, nil
}

// replaced is the files with the change made, and whether the name was there.
func replaced(files []registry.DeclaredFile, d registry.Declare) ([]registry.DeclaredFile, bool) {
	out := slices.DeleteFunc(slices.Clone(files), func(f registry.DeclaredFile) bool { return f.Name == d.Name })
	known := len(out) < len(files)
	if !d.Delete {
		out = append(out, registry.DeclaredFile{Name: d.Name, Text: d.Text})
	}
	return out, known
}

// notDeclared is the answer to a change that was not made.
func (a *api) notDeclared(ctx context.Context, d registry.Declare, err error) error {
	var conflict *registry.ConflictError
	var refused *problem
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &conflict):
		last := conflict.Last
		detail := fmt.Sprintf("the declared topology is at revision %d, not %d", last.Revision, conflict.Expected)
		if last.Revision > 0 {
			detail += ": " + last.Cause()
		}
		in := "body"
		if d.Delete {
			in = "query"
		}
		return newProblem(http.StatusConflict, detail, wire.FieldError{
			Location: in + ".expected_revision", Message: "is not the present one", Value: strconv.FormatInt(conflict.Expected, 10), Allowed: strconv.FormatInt(last.Revision, 10),
		})
	case isNotFound(err):
		return notFound("path.name", d.Name, "no file %q is declared; GET /v1/topology/declared lists those that are", d.Name)
	case errors.Is(err, registry.ErrTooMany):
		return newProblem(http.StatusUnprocessableEntity, registry.ErrTooMany.Error())
	}
	return a.unreadable(ctx, err)
}
