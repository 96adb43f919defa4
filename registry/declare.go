package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
)

// The bounds of what operators declare.
const (
	MaxDeclared      = 1 << 20 // bytes of one file
	MaxDeclaredFiles = 100     // files in force at once
)

// DeclaredFile is a file of the declared topology as it stood after one change of the set.
type DeclaredFile struct {
	Name             string
	Revision         int64  // of the set: the change that made it so
	Text             string // empty in lists
	Size             int    // bytes of the text
	Deleted          bool
	Author, Comment  string
	At               int64 // Unix µs
	RegistryRevision int64 // the registry's, as of that change
}

// Declaration is the files that operators declared, of one moment.
type Declaration struct {
	Revision int64          // of the newest change; 0: nothing was ever declared
	Files    []DeclaredFile // those in force with their texts, by name
	Last     DeclaredFile   // the newest change, without its text; it may be a deletion
}

// Declare is one change of the declared topology: a file gets a new text, or goes.
type Declare struct {
	Name            string
	Text            string
	Delete          bool
	Author, Comment string
	// Expected is the revision of the set that the change was made for; nil: any.
	Expected *int64
	Detail   json.RawMessage // for the event, at most 64 KiB; nil: none
}

// ErrConflict is what a ConflictError is: the declared topology was changed meanwhile.
var ErrConflict = errors.New("the declared topology was changed meanwhile")

// ConflictError says by what change it was.
type ConflictError struct {
	Expected int64
	Last     DeclaredFile // its Revision is 0 when nothing was ever declared
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("revision %d was expected, the declared topology is at %d: %v", e.Expected, e.Last.Revision, ErrConflict)
}

// Is makes it an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Declare carries out a change and raises the registry revision in the same transaction; the event is of the kind
// EventTopologyDeclared. A file that has this text already stays as it is: the result is the row that stands, and changed
// is false. Errors: a *ConflictError when another change came first, ErrNotFound when a name that is to be deleted is not
// there. That the text means something is for the caller to see to, under the revision that it expects.
func (s *Store) Declare(ctx context.Context, d Declare) (done DeclaredFile, changed bool, err error) {
	if err := d.check(); err != nil {
		return DeclaredFile{}, false, fmt.Errorf("registry: declare %q: %w", d.Name, err)
	}
	err = s.write(ctx, func(tx *sqlx.Tx) error {
		done, changed, err = s.declare(ctx, tx, d)
		return err
	})
	if err != nil {
		return DeclaredFile{}, false, fmt.Errorf("registry: declare %s: %w", d.Name, err)
	}
	return done, changed, nil
}

func (d *Declare) check() error {
	switch {
	case d.Name == "" || len(d.Name) > 64 || !isASCII(d.Name):
		return errors.New("want a name of 1 to 64 ASCII characters")
	case d.Author == "":
		return errors.New("want an author")
	case len(d.Text) > MaxDeclared:
		return fmt.Errorf("the text has %d bytes, at most %d", len(d.Text), MaxDeclared)
	case !utf8.ValidString(d.Text) || strings.IndexByte(d.Text, 0) >= 0:
		return errors.New("the text is not UTF-8 without NUL")
	case len(d.Detail) > maxText:
		return fmt.Errorf("detail of %d bytes, at most %d", len(d.Detail), maxText)
	}
	return nil
}

// declare holds the revision's lock, so the set can't change below it.
func (s *Store) declare(ctx context.Context, tx *sqlx.Tx, d Declare) (DeclaredFile, bool, error) {
	book, err := s.lockLedger(ctx, tx)
	if err != nil {
		return DeclaredFile{}, false, err
	}
	last, err := lastDeclared(ctx, tx)
	if err != nil {
		return DeclaredFile{}, false, err
	}
	if d.Expected != nil && *d.Expected != last.Revision {
		return DeclaredFile{}, false, &ConflictError{Expected: *d.Expected, Last: last}
	}
	was, err := declaredNow(ctx, tx, d.Name)
	switch {
	case err != nil:
		return DeclaredFile{}, false, err
	case was == nil && d.Delete:
		return DeclaredFile{}, false, ErrNotFound
	case was == nil:
		if err := roomForOne(ctx, tx); err != nil {
			return DeclaredFile{}, false, err
		}
	case !d.Delete && was.Text == d.Text:
		return *was, false, nil
	}
	f := DeclaredFile{
		Name: d.Name, Revision: last.Revision + 1, Text: d.Text, Size: len(d.Text), Deleted: d.Delete, Author: cutText(d.Author, 128),
		Comment: cutText(d.Comment, 1024), At: s.now(), RegistryRevision: book.next(),
	}
	if err := insertDeclared(ctx, tx, f); err != nil {
		return DeclaredFile{}, false, err
	}
	if err := book.save(ctx, tx); err != nil {
		return DeclaredFile{}, false, err
	}
	return f, true, insertEvents(ctx, tx, []Event{{
		At: f.At, Kind: EventTopologyDeclared, Actor: f.Author, Cause: f.Cause(), Detail: d.Detail, Revision: f.RegistryRevision,
	}})
}

// Cause says in words what the change was, such as "main declared by ops (revision 3): canary".
func (f *DeclaredFile) Cause() string {
	what := "declared"
	if f.Deleted {
		what = "deleted"
	}
	text := fmt.Sprintf("%s %s by %s (revision %d)", f.Name, what, f.Author, f.Revision)
	if f.Comment != "" {
		text += ": " + f.Comment
	}
	return text
}

func insertDeclared(ctx context.Context, tx *sqlx.Tx, f DeclaredFile) error {
	var body any // NULL for a deletion
	if !f.Deleted {
		body = f.Text
	}
	cols := []string{"revision", "name", "body", "author", "remark", "created_at", "registry_revision"}
	_, err := tx.ExecContext(ctx, insert("declared", cols, 1), f.Revision, f.Name, body, f.Author, f.Comment, f.At, f.RegistryRevision)
	if err != nil {
		return fmt.Errorf("write revision %d: %w", f.Revision, err)
	}
	return nil
}

// roomForOne refuses one file too many.
func roomForOne(ctx context.Context, tx *sqlx.Tx) error {
	var n int
	if err := tx.GetContext(ctx, &n, `SELECT COUNT(*) FROM (`+declaredInForce+`) f`); err != nil {
		return fmt.Errorf("count the files: %w", err)
	}
	if n >= MaxDeclaredFiles {
		return fmt.Errorf("%w: %d are declared", ErrTooMany, n)
	}
	return nil
}

// ErrTooMany: MaxDeclaredFiles are in force already.
var ErrTooMany = fmt.Errorf("at most %d files can be declared", MaxDeclaredFiles)
