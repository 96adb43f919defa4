package registry

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Dialect is the SQL that the database speaks. All statements but a few are the same for both.
type Dialect int

// The dialects.
const (
	MySQL  Dialect = iota + 1 // MySQL 8, MariaDB 10.11 and newer
	SQLite                    // 3.43 and newer; open it with the DSN of SQLiteDSN
)

// String returns the name that the migrations go by.
func (d Dialect) String() string {
	switch d {
	case MySQL:
		return "mysql"
	case SQLite:
		return "sqlite"
	}
	return "unknown"
}

// SQLiteDSN is the data source name for modernc.org/sqlite that the Store needs: write-ahead log, writers queue for up to
// 10 s, and a writing transaction takes the write lock as it begins, since one that upgrades later fails.
func SQLiteDSN(file string) string {
	q := url.Values{}
	q.Set("_txlock", "immediate")
	for _, p := range []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)"} {
		q.Add("_pragma", p)
	}
	path := (&url.URL{Path: file}).EscapedPath()
	return "file:" + path + "?" + q.Encode()
}

// writeTx is READ COMMITTED on MySQL: no gap locks, and what is read under the revision lock is what stands there now.
func (d Dialect) writeTx() *sql.TxOptions {
	if d == MySQL {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// readTx gives all reads of a transaction one moment.
func (d Dialect) readTx() *sql.TxOptions {
	if d == MySQL {
		return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	return &sql.TxOptions{ReadOnly: true}
}

// forUpdate is the suffix that locks the rows read; SQLite's one writer holds everything.
func (d Dialect) forUpdate() string {
	if d == MySQL {
		return " FOR UPDATE"
	}
	return ""
}

// greatest is the larger of two expressions.
func (d Dialect) greatest(a, b string) string {
	if d == MySQL {
		return "GREATEST(" + a + ", " + b + ")"
	}
	return "MAX(" + a + ", " + b + ")"
}

// nowMicros is the database's own clock in Unix µs, free of session time zones.
func (d Dialect) nowMicros() string {
	if d == MySQL {
		return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
	}
	return "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"
}

// routePath is RoutePath of a column of urls.
func (d Dialect) routePath(column string) string {
	trimmed := "RTRIM(" + column + ", '/')"
	if d == MySQL {
		trimmed = "TRIM(TRAILING '/' FROM " + column + ")"
	}
	return "CASE " + column + " WHEN '/' THEN '/' ELSE " + trimmed + " END"
}

// onConflict begins the second half of an upsert on the given key.
func (d Dialect) onConflict(key string) string {
	if d == MySQL {
		return " ON DUPLICATE KEY UPDATE "
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET "
}

// incoming is the value that the insert half of an upsert carries for a column.
func (d Dialect) incoming(col string) string {
	if d == MySQL {
		return "VALUES(" + col + ")"
	}
	return "excluded." + col
}

// upsert is an insert of n rows that replaces all columns but the key where the key exists.
func (d Dialect) upsert(table, key string, cols []string, n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + strings.Join(cols, ", ") + ") VALUES ")
	writeTuples(&b, len(cols), n)
	b.WriteString(d.onConflict(key))
	keys := "," + strings.ReplaceAll(key, " ", "") + ","
	first := true
	for _, c := range cols {
		if strings.Contains(keys, ","+c+",") {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		b.WriteString(c + " = " + d.incoming(c))
	}
	return b.String()
}

// insert is a plain insert of n rows.
func insert(table string, cols []string, n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + strings.Join(cols, ", ") + ") VALUES ")
	writeTuples(&b, len(cols), n)
	return b.String()
}

func writeTuples(b *strings.Builder, width, n int) {
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + marks(width) + ")")
	}
}

// marks is n placeholders.
func marks(n int) string {
	if n == 0 {
		return ""
	}
	return strings.Repeat("?, ", n-1) + "?"
}

// MySQL's errors after which the same transaction may succeed, and SQLite's primary result codes for the same.
const (
	mysqlRecordChanged   = 1020
	mysqlLockWaitTimeout = 1205
	mysqlDeadlock        = 1213
	sqliteBusy           = 5
	sqliteLocked         = 6
)

// Passing reports whether err says nothing about the work itself: another transaction was in its way, or the connection to
// the database was lost. The same work may succeed later.
func Passing(err error) bool {
	return retryable(err) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn)
}

// retryable reports whether err says that the transaction was rolled back only because another one was in its way.
func retryable(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number == mysqlRecordChanged || my.Number == mysqlLockWaitTimeout || my.Number == mysqlDeadlock
	}
	var lite interface{ Code() int } // the SQLite driver's error, which production does not link
	if errors.As(err, &lite) {
		code := lite.Code() & 0xff
		return code == sqliteBusy || code == sqliteLocked
	}
	return false
}
