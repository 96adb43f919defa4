package roles

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/cmd/internal/await"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/migrations"
	"github.com/upstrand/upstrand/registry"
)

// Database is the way to the registry's database: MySQL in upstrand, SQLite in upstrand-dev.
type Database interface {
	Flags(*settings.Set)
	// Open returns a pool; it need not dial. A patient one sets no limit on how long a statement may take.
	Open(log zerolog.Logger, patient bool) (*sqlx.DB, error)
	Dialect() registry.Dialect
}

// Store is the registry's store as the roles of one process share it.
type Store struct {
	*registry.Store
	log     zerolog.Logger
	db      *sqlx.DB
	dialect registry.Dialect
	state   atomic.Pointer[error] // what the last look said; see Run
}

// OpenStore opens the pool and closes it at the end of the process. It does not wait for the database. Migrations need a
// patient one.
func (p *Process) OpenStore(d Database, patient bool, opt registry.Options) (*Store, error) {
	db, err := d.Open(p.Log, patient)
	if err != nil {
		return nil, err
	}
	store, err := registry.Open(db, d.Dialect(), opt)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	p.Group.OnStop("database", func(context.Context) error { return db.Close() })
	return &Store{Store: store, log: p.Log, db: db, dialect: d.Dialect()}, nil
}

// Await waits until the database answers and its schema is the one that this program needs.
func (s *Store) Await(ctx context.Context) error {
	return await.For(ctx, s.log, "the database", s.look)
}

// AwaitAnswer waits until the database answers, whatever its schema.
func (s *Store) AwaitAnswer(ctx context.Context) error {
	return await.For(ctx, s.log, "the database", s.db.PingContext)
}

// Migrate brings the schema up to date and returns what it applied.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	return migrations.Up(ctx, s.db.DB, s.dialect.String())
}

// look reaches for the database and compares its schema. A newer schema is fine: migrations only add while programs of
// two versions run side by side.
func (s *Store) look(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	err := migrations.Check(ctx, s.db.DB, s.dialect.String())
	if errors.Is(err, migrations.ErrNewer) {
		return nil
	}
	return err
}

// The pause between two looks of Run, and the limit of one.
const (
	lookEvery = 2 * time.Second
	lookLimit = 3 * time.Second
)

var errNotLooked = errors.New("has not been reached yet")

// Ready says whether the database answered at the last look of Run.
func (s *Store) Ready() error {
	if err := s.state.Load(); err != nil {
		return *err
	}
	return errNotLooked
}

// Run looks at the database every few seconds, for Ready, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for first, was := true, error(nil); ; first = false {
		err := s.lookOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.state.Store(&err)
		if first || (err == nil) != (was == nil) {
			s.say(err)
		}
		was = err
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *Store) lookOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	return s.look(ctx)
}

func (s *Store) say(err error) {
	if err != nil {
		s.log.Warn().Err(err).Msg("the database is away")
		return
	}
	s.log.Info().Msg("the database is in reach")
}
