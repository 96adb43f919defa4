// Package logging builds the one logger of a process: JSON lines for machines, or coloured lines when a person looks on.
//
// It is not where anything decides what to log, and nothing here is global: the logger is handed down.
package logging

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/cmd/internal/settings"
)

// Options are the settings of the logger.
type Options struct {
	Level  string
	Format string
}

// Flags declares the settings in their group. level is the default of --log-level.
func (o *Options) Flags(set *settings.Set, level string) {
	g := set.Group("Logging")
	g.Choice(&o.Level, "log-level", level, "least important level that is written to standard error", "debug", "info", "warn", "error")
	g.Choice(&o.Format, "log-format", "auto", "json, or console for people; auto takes console on a terminal", "auto", "json", "console")
}

// formats are set once: zerolog keeps them in package variables. A duration carries its unit: "1.5s".
var formats = sync.OnceFunc(func() {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.DurationFieldFormat = zerolog.DurationFormatString
})

// New builds the logger that writes to w. A level that is not one of Options is an error.
func New(o Options, w io.Writer) (zerolog.Logger, error) {
	formats()
	level, err := zerolog.ParseLevel(o.Level)
	if err != nil {
		return zerolog.Nop(), fmt.Errorf("log level %q: %w", o.Level, err)
	}
	if o.Format == "console" || (o.Format == "auto" && terminal(w)) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: !terminal(w)}
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
