package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/upstrand/upstrand/confgen/plan"
	"github.com/upstrand/upstrand/confgen/topology"
	"github.com/upstrand/upstrand/registry"
	"github.com/upstrand/upstrand/registry/wire"
)

// mostFaults is how many faults an answer names: a file of a megabyte can have very many.
const mostFaults = 500

// faulty is the answer to files that can't be declared.
func faulty(d registry.Declare, p *plan.Plan) *problem {
	told := p.Faults[:min(len(p.Faults), mostFaults)]
	errs := make([]wire.FieldError, len(told))
	for i, f := range told {
		errs[i] = wire.FieldError{Location: place(f), Message: f.Reason, Allowed: f.Allowed}
		if f.Name != "" {
			errs[i].Message = f.Name + ": " + f.Reason
		}
	}
	what := fmt.Sprintf("file %s can't be declared", d.Name)
	if d.Delete {
		what = fmt.Sprintf("file %s can't be deleted", d.Name)
	}
	if len(told) < len(p.Faults) {
		what += fmt.Sprintf("; the first %d of %d faults follow", len(told), len(p.Faults))
	}
	return newProblem(http.StatusUnprocessableEntity, what, errs...)
}

// place is FILE:LINE, as far as it is known.
func place(f topology.Fault) string {
	switch {
	case f.File == "":
		return "body.text"
	case f.Line == 0:
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

func answerOf(p *plan.Plan) *wire.DeclareAnswer {
	a := &wire.DeclareAnswer{
		Summary: plan.Summary(p.Changes), Changes: make([]wire.TopologyChange, len(p.Changes)), Records: p.Records, Warnings: make([]wire.Remark, len(p.Warnings)),
	}
	for i, c := range p.Changes {
		a.Changes[i] = wire.TopologyChange{Kind: string(c.Kind), Name: c.Name, Change: c.What(), Before: side(c.Kind, c.Before), After: side(c.Kind, c.After)}
	}
	for i, f := range p.Warnings {
		a.Warnings[i] = wire.Remark{File: f.File, Line: f.Line, Directive: f.Name, Message: f.Reason, Allowed: f.Allowed}
	}
	return a
}

func side(kind plan.Kind, s *plan.Side) *wire.TopologySide {
	if s == nil {
		return nil
	}
	out := &wire.TopologySide{Origin: string(s.Origin), Lines: s.Lines}
	if kind == plan.Upstream {
		out.Peers = &s.Peers
	}
	return out
}

// An event names so many changes at most, and as far as they fit into so many bytes: names of routes may be long.
const (
	mostNamed      = 100
	mostNamedBytes = 32 << 10
)

// eventDetail is what the event of a change says beside who and why. It is below the 64 KiB that an event may have.
func eventDetail(file string, a *wire.DeclareAnswer) json.RawMessage {
	changes, size := []json.RawMessage{}, 0
	for _, c := range a.Changes[:min(len(a.Changes), mostNamed)] {
		text, _ := json.Marshal(map[string]string{"kind": c.Kind, "name": c.Name, "change": c.Change}) // of strings
		if size += len(text) + 1; size > mostNamedBytes {
			break
		}
		changes = append(changes, text)
	}
	text, _ := json.Marshal(map[string]any{"file": file, "summary": a.Summary, "records": a.Records, "changes": changes}) // of strings and numbers
	return text
}

func (a *api) getDeclared(ctx context.Context, _ *struct{}) (*output[wire.DeclaredTopology], error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	d, err := a.store.Declared(ctx)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	out := wire.DeclaredTopology{Revision: d.Revision, Files: make([]wire.DeclaredFile, len(d.Files))}
	for i, f := range d.Files {
		out.Files[i] = declaredFile(f, false)
	}
	if d.Revision > 0 {
		last := declaredFile(d.Last, false)
		out.Last = &last
	}
	return &output[wire.DeclaredTopology]{out}, nil
}

// DeclaredName is the path of everything about one file; huma reads embedded types only when they are exported.
type DeclaredName struct {
	Name string `path:"name" maxLength:"64"`
}

func (a *api) getDeclaredFile(ctx context.Context, in *DeclaredName) (*output[wire.DeclaredFile], error) {
	return a.declaredAt(ctx, in.Name, 0)
}

type declaredRevision struct {
	DeclaredName
	Revision int64 `path:"revision" minimum:"1"`
}

func (a *api) getDeclaredRevision(ctx context.Context, in *declaredRevision) (*output[wire.DeclaredFile], error) {
	return a.declaredAt(ctx, in.Name, in.Revision)
}

func (a *api) declaredAt(ctx context.Context, name string, revision int64) (*output[wire.DeclaredFile], error) {
	ctx, cancel := a.read(ctx)
	defer cancel()
	f, err := a.store.DeclaredAt(ctx, name, revision)
	switch {
	case isNotFound(err) && revision != 0:
		return nil, notFound("path.revision", strconv.FormatInt(revision, 10), "file %q has no revision %d; GET /v1/topology/declared/%s/history lists those that it has", name, revision, name)
	case isNotFound(err):
		return nil, notFound("path.name", shown(name), "no file %q is declared; GET /v1/topology/declared lists those that are", name)
	case err != nil:
		return nil, a.unreadable(ctx, err)
	}
	return &output[wire.DeclaredFile]{declaredFile(f, true)}, nil
}

type declaredHistoryInput struct {
	DeclaredName
	PageInput
}

func (a *api) listDeclaredHistory(ctx context.Context, in *declaredHistoryInput) (*output[wire.DeclaredHistory], error) {
	var before int64
	if in.Cursor != "" {
		key, err := decodeNumbers(cursorDeclared, in.Cursor)
		if err != nil {
			return nil, badCursor(in.Cursor)
		}
		before = key[0]
	}
	ctx, cancel := a.read(ctx)
	defer cancel()
	rows, err := a.store.DeclaredHistory(ctx, in.Name, before, in.Limit+1)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	if len(rows) == 0 && before == 0 {
		return nil, notFound("path.name", shown(in.Name), "no file %q was ever declared; GET /v1/topology/declared lists those that are", in.Name)
	}
	rows, more := cut(rows, in.Limit)
	list := wire.DeclaredHistory{Changes: make([]wire.DeclaredFile, len(rows))}
	for i, f := range rows {
		list.Changes[i] = declaredFile(f, false)
	}
	if more {
		list.NextCursor = encodeNumbers(cursorDeclared, rows[len(rows)-1].Revision)
	}
	return &output[wire.DeclaredHistory]{list}, nil
}

func declaredFile(f registry.DeclaredFile, text bool) wire.DeclaredFile {
	out := wire.DeclaredFile{
		Name: f.Name, Revision: f.Revision, Deleted: f.Deleted, Author: f.Author, Comment: f.Comment, At: wire.Time(f.At), Bytes: f.Size, Registry: f.RegistryRevision,
	}
	if text && !f.Deleted {
		out.Text = &f.Text
	}
	return out
}
