package embedded

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"
	_ "modernc.org/sqlite" // the driver named "sqlite"

	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/registry"
)

// SQLite is the registry's database as a file.
type SQLite struct {
	File string
}

// Flags declares the settings in their group.
func (s *SQLite) Flags(set *settings.Set) {
	set.Group("Database (SQLite)").Path(&s.File, "sqlite", "FILE", "file of the registry; migrate makes it, and every role of a system uses the same one")
	set.Check(func() settings.Problems {
		if s.File == "" {
			return settings.Problems{{Flag: "sqlite", Allowed: "needed: the file of the registry"}}
		}
		if info, err := os.Stat(filepath.Dir(s.File)); err != nil || !info.IsDir() {
			return settings.Problems{{Flag: "sqlite", Value: s.File, Allowed: "the folder it is in must exist"}}
		}
		if info, err := os.Stat(s.File); err == nil && info.IsDir() {
			return settings.Problems{{Flag: "sqlite", Value: s.File, Allowed: "a file is needed, this is a folder"}}
		}
		return nil
	})
}

// Dialect is the SQL that the file speaks.
func (s *SQLite) Dialect() registry.Dialect { return registry.SQLite }

// connections is enough for readers beside SQLite's one writer.
const connections = 8

// Open returns a pool over the file. Statements take as long as they take.
func (s *SQLite) Open(zerolog.Logger, bool) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", registry.SQLiteDSN(s.File))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.File, err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}
