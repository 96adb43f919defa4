// Package mysqldb turns the MySQL settings of a command into a connection pool with what the registry's store asks of its
// driver. It knows no table.
package mysqldb

import (
	"database/sql"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/rs/zerolog"

	"github.com/upstrand/upstrand/cmd/internal/secret"
	"github.com/upstrand/upstrand/cmd/internal/settings"
	"github.com/upstrand/upstrand/cmd/internal/tlsconf"
	"github.com/upstrand/upstrand/registry"
)

// Options are the settings of the way to MySQL or MariaDB.
type Options struct {
	Addr         string // host:port, or the path of a unix socket
	Database     string
	User         string
	PasswordFile string // empty: no password
	TLS          string
	Files        tlsconf.Files
	MaxConns     int
	Timeout      time.Duration // of one read or write on the socket; 0: none
}

// Dialect is the SQL that the server speaks.
func (o *Options) Dialect() registry.Dialect { return registry.MySQL }

// Flags declares the settings in their group.
func (o *Options) Flags(set *settings.Set) {
	g := set.Group("Database (MySQL 8 or MariaDB 10.11 and later)")
	g.Match(&o.Addr, "mysql-addr", "127.0.0.1:3306", "host:port of the server, or the path of its unix socket",
		"host:port or the absolute path of a unix socket", validAddr)
	g.Match(&o.Database, "mysql-database", "upstrand", "database that holds the registry", "1 to 64 characters", shortText)
	g.Match(&o.User, "mysql-user", "upstrand", "user to log in as", "1 to 80 characters", shortText)
	g.File(&o.PasswordFile, "mysql-password-file", "file with the password of that user; a line feed at its end does not count; absent: no password", secret.Check)
	g.Choice(&o.TLS, "mysql-tls", "false", "TLS to the server: true checks its certificate, skip-verify does not, preferred takes it where offered",
		"false", "true", "skip-verify", "preferred")
	o.Files.Flags(set, g, "mysql-tls", "the server")
	g.Int(&o.MaxConns, "mysql-max-conns", 16, 2, 1000, "most connections that this process opens")
	g.Duration(&o.Timeout, "mysql-timeout", 10*time.Second, time.Second, 10*time.Minute, "longest wait for the server in one read or write")
	set.Check(func() settings.Problems {
		if o.Files.Given() && o.TLS == "false" {
			return settings.Problems{{Flag: "mysql-tls", Value: o.TLS, Allowed: "not false when one of --mysql-tls-… is given"}}
		}
		return nil
	})
}

func validAddr(s string) bool {
	if strings.HasPrefix(s, "/") {
		return true
	}
	host, port, err := net.SplitHostPort(s)
	return err == nil && host != "" && port != "" && port != "0"
}

func shortText(s string) bool { return s != "" && len(s) <= 80 && !strings.ContainsAny(s, "\x00\r\n") }

// silence is for how long a server bears a client that neither sends what is next nor takes what it asked for. A client
// that is frozen in a transaction (a stopped process, a hung host) holds its locks, and with them everybody else, at most
// that long. The servers' own limits are 8 hours and a minute.
const silence = 5 * time.Second

// Lifetimes of pooled connections: bounded, so that after a failover behind a name or a proxy the pool moves on. The pool
// looks for idle ones once a second or so: they are closed before the server loses patience with them, which it would log,
// and still serve those who look every 2 s.
const (
	dialTimeout = 5 * time.Second
	lifetime    = 3 * time.Minute
	idleTime    = silence / 2
)

// Open builds the pool; it does not dial. A patient one has no limit on how long a statement may take, nor on how long a
// session is silent: migrations hold a lock by one. The driver's own messages go to log at debug level.
func (o *Options) Open(log zerolog.Logger, patient bool) (*sqlx.DB, error) {
	conf, err := o.config(log, patient)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	db := sqlx.NewDb(sql.OpenDB(connector), "mysql")
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	db.SetConnMaxLifetime(lifetime)
	db.SetConnMaxIdleTime(idleTime)
	return db, nil
}

// config is the driver's configuration. ClientFoundRows: a conditional update that finds its row but changes nothing still
// counts it, which the store's fences rely on. RejectReadOnly: a server that a failover made read-only is left. Without
// InterpolateParams each statement would take two round trips. The driver's look at a connection before it is used again
// stays on: one that the server has closed is replaced before anything is sent.
func (o *Options) config(log zerolog.Logger, patient bool) (*mysql.Config, error) {
	conf := mysql.NewConfig()
	conf.Net, conf.Addr = "tcp", o.Addr
	if strings.HasPrefix(o.Addr, "/") {
		conf.Net = "unix"
	}
	conf.DBName, conf.User = o.Database, o.User
	conf.Timeout = dialTimeout
	if !patient {
		conf.ReadTimeout, conf.WriteTimeout = o.Timeout, o.Timeout
		conf.Params = maps.Clone(session)
	}
	conf.ClientFoundRows, conf.InterpolateParams, conf.RejectReadOnly = true, true, true
	conf.Logger = quiet{log}
	if err := conf.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	if o.PasswordFile != "" {
		password, err := secret.FromFile(o.PasswordFile)
		if err != nil {
			return nil, err
		}
		conf.Passwd = password
	}
	return conf, o.tls(conf)
}

// session are the variables of a session, the same in MySQL and MariaDB. Leases are written by statements that are
// transactions of their own, so autocommit is not left to the server's configuration.
var session = map[string]string{
	"wait_timeout":      seconds(silence),
	"net_write_timeout": seconds(silence),
	"autocommit":        "1",
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// tls sets what --mysql-tls asks for. Without a name to expect it is the host that is dialled.
func (o *Options) tls(conf *mysql.Config) error {
	if o.TLS == "false" || o.TLS == "" {
		return nil
	}
	loaded, err := o.Files.Load()
	if err != nil {
		return err
	}
	if host, _, err := net.SplitHostPort(o.Addr); err == nil && loaded.ServerName == "" {
		loaded.ServerName = host
	}
	loaded.InsecureSkipVerify = o.TLS != "true"
	conf.TLS = loaded
	conf.AllowFallbackToPlaintext = o.TLS == "preferred"
	return nil
}

// quiet is the driver's logger. What it says ("unexpected EOF") comes back as an error of the call as well.
type quiet struct{ log zerolog.Logger }

func (q quiet) Print(v ...any) { q.log.Debug().Str("driver", "mysql").Msg(fmt.Sprint(v...)) }
