package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// declaredInForce is the newest row of each name, unless it is a deletion.
const declaredInForce = `SELECT d.revision, d.name, d.body, OCTET_LENGTH(d.body) AS size, d.author, d.remark, d.created_at, d.registry_revision
	FROM declared d JOIN (SELECT name, MAX(revision) AS newest FROM declared GROUP BY name) n
		ON n.name = d.name AND n.newest = d.revision
	WHERE d.body IS NOT NULL`

// declaredWithout is a row without its text.
const declaredWithout = `SELECT revision, name, CASE WHEN body IS NULL THEN NULL ELSE '' END AS body, OCTET_LENGTH(body) AS size,
	author, remark, created_at, registry_revision FROM declared`

type declaredRow struct {
	Revision         int64          `db:"revision"`
	Name             string         `db:"name"`
	Body             sql.NullString `db:"body"`
	Size             sql.NullInt64  `db:"size"`
	Author           string         `db:"author"`
	Remark           string         `db:"remark"`
	CreatedAt        int64          `db:"created_at"`
	RegistryRevision int64          `db:"registry_revision"`
}

func (r declaredRow) file() DeclaredFile {
	return DeclaredFile{
		Name: r.Name, Revision: r.Revision, Text: r.Body.String, Size: int(r.Size.Int64), Deleted: !r.Body.Valid, Author: r.Author,
		Comment: r.Remark, At: r.CreatedAt, RegistryRevision: r.RegistryRevision,
	}
}

func filesOf(rows []declaredRow) []DeclaredFile {
	files := make([]DeclaredFile, len(rows))
	for i, r := range rows {
		files[i] = r.file()
	}
	return files
}

// Declared is the declared topology as it is now.
func (s *Store) Declared(ctx context.Context) (Declaration, error) {
	var d Declaration
	err := s.read(ctx, func(tx *sqlx.Tx) (err error) {
		d, err = declaredAll(ctx, tx)
		return err
	})
	if err != nil {
		return Declaration{}, fmt.Errorf("registry: declared topology: %w", err)
	}
	return d, nil
}

// DeclaredHistory is a page of the changes of a file, newest first, without texts; before, when not 0, only older ones than
// that. A name that never was gives none.
func (s *Store) DeclaredHistory(ctx context.Context, name string, before int64, limit int) ([]DeclaredFile, error) {
	w := &where{}
	w.add("name = ?", name)
	if before != 0 {
		w.add("revision < ?", before)
	}
	rows, err := list[declaredRow](ctx, s.db, "history of "+name,
		declaredWithout+w.String()+" ORDER BY revision DESC LIMIT ?", append(w.args, pageLimit(limit))...)
	if err != nil {
		return nil, err
	}
	return filesOf(rows), nil
}

// DeclaredAt is a file as one of its revisions made it; revision 0: as it is now. ErrNotFound: the name has no such one,
// or, for 0, is not in force.
func (s *Store) DeclaredAt(ctx context.Context, name string, revision int64) (DeclaredFile, error) {
	const cols = `SELECT revision, name, body, OCTET_LENGTH(body) AS size, author, remark, created_at, registry_revision FROM declared WHERE name = ?`
	if revision != 0 {
		r, err := one[declaredRow](ctx, s.db, fmt.Sprintf("%s at revision %d", name, revision), cols+` AND revision = ?`, name, revision)
		return r.file(), err
	}
	r, err := one[declaredRow](ctx, s.db, "declared file "+name, cols+` ORDER BY revision DESC LIMIT 1`, name)
	if err == nil && !r.Body.Valid {
		err = fmt.Errorf("registry: declared file %s was deleted: %w", name, ErrNotFound)
	}
	return r.file(), err
}

// declaredAll reads the set in a transaction.
func declaredAll(ctx context.Context, tx *sqlx.Tx) (Declaration, error) {
	last, err := lastDeclared(ctx, tx)
	if err != nil || last.Revision == 0 {
		return Declaration{}, err
	}
	var rows []declaredRow
	if err := tx.SelectContext(ctx, &rows, declaredInForce+` ORDER BY d.name`); err != nil {
		return Declaration{}, fmt.Errorf("read the declared files: %w", err)
	}
	return Declaration{Revision: last.Revision, Files: filesOf(rows), Last: last}, nil
}

// declaredSince is the set if it was changed after a registry revision, else nil.
func declaredSince(ctx context.Context, tx *sqlx.Tx, since int64) (*Declaration, error) {
	last, err := lastDeclared(ctx, tx)
	if err != nil || last.RegistryRevision <= since {
		return nil, err
	}
	d, err := declaredAll(ctx, tx)
	return &d, err
}

// lastDeclared is the newest change of the set; the zero value when there is none. It costs one row, without its text.
func lastDeclared(ctx context.Context, tx *sqlx.Tx) (DeclaredFile, error) {
	var r declaredRow
	err := tx.GetContext(ctx, &r, declaredWithout+` ORDER BY revision DESC LIMIT 1`)
	if errors.Is(err, sql.ErrNoRows) {
		return DeclaredFile{}, nil
	}
	if err != nil {
		return DeclaredFile{}, fmt.Errorf("read the last change of the declared topology: %w", err)
	}
	return r.file(), nil
}

// declaredNow is a file as it is now; nil: it is not there.
func declaredNow(ctx context.Context, tx *sqlx.Tx, name string) (*DeclaredFile, error) {
	var rows []declaredRow
	if err := tx.SelectContext(ctx, &rows, declaredInForce+` AND d.name = ?`, name); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	f := rows[0].file()
	return &f, nil
}
