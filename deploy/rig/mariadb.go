package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// MariaDB is a private MariaDB server: own data folder, socket and port, reached on 127.0.0.1.
type MariaDB struct {
	*Proc
	dir, addr, socket string
	opt               MariaDBOptions
}

// MariaDBOptions are the optional parts of a server.
type MariaDBOptions struct {
	Cert, Key string   // PEM files: offer TLS
	Extra     []string // further options of mariadbd
}

// The account that roles and tests log in with, on the one database of a private server.
const (
	DBUser     = "upstrand"
	DBPassword = "rig-password"
	DBName     = "upstrand"
)

// StartMariaDB installs an empty database in dir, which must be traversable for the user mysql, and starts it.
func StartMariaDB(ctx context.Context, dir string, opt MariaDBOptions) (*MariaDB, error) {
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		if server, err = exec.LookPath("/usr/sbin/mariadbd"); err != nil {
			return nil, fmt.Errorf("rig: a real database needs mariadb-server: %w", err)
		}
	}
	cred, err := mysqlUser()
	if err != nil {
		return nil, err
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	m := &MariaDB{dir: dir, addr: addr, opt: opt, socket: filepath.Join(dir, "s")}
	if err := m.install(ctx, cred); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	args := []string{"--no-defaults", "--datadir=" + m.data(), "--tmpdir=" + m.tmp(), "--bind-address=127.0.0.1", "--port=" + port, "--socket=" + m.socket,
		"--pid-file=" + filepath.Join(dir, "pid"), "--skip-name-resolve", "--skip-log-bin", "--innodb-buffer-pool-size=128M",
		"--innodb-log-file-size=64M", "--max-connections=200", "--init-file=" + filepath.Join(dir, "init.sql"),
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_bin", "--performance-schema=OFF"}
	if opt.Cert != "" {
		args = append(args, "--ssl-cert="+opt.Cert, "--ssl-key="+opt.Key)
	}
	m.Proc = &Proc{Name: "mariadb", Path: server, Args: append(args, opt.Extra...), Cred: cred, Log: filepath.Join(dir, "mariadb.log")}
	return m, m.Start(ctx)
}

// mysqlUser is who the server runs as: itself, or the user mysql when started by root, as which the server refuses to run.
func mysqlUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("mysql")
	if err != nil {
		return nil, fmt.Errorf("rig: run mariadbd as: %w", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("rig: user mysql: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (m *MariaDB) data() string { return filepath.Join(m.dir, "data") }

// tmp is a folder for temporary tables: servers that share one remove each other's.
func (m *MariaDB) tmp() string { return filepath.Join(m.dir, "tmp") }

func (m *MariaDB) install(ctx context.Context, cred *syscall.Credential) error {
	for _, folder := range []string{m.data(), m.tmp()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("rig: %w", err)
		}
	}
	// The init file runs at each start, before the port opens.
	initSQL := fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\n"+
		"CREATE USER IF NOT EXISTS '%s'@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO '%s'@'%%';\n", DBName, DBUser, DBPassword, DBUser)
	if err := os.WriteFile(filepath.Join(m.dir, "init.sql"), []byte(initSQL), 0o644); err != nil {
		return err
	}
	args := []string{"--no-defaults", "--datadir=" + m.data(), "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"}
	if cred != nil {
		for _, p := range []string{m.dir, m.data(), m.tmp()} {
			if err := os.Chown(p, int(cred.Uid), int(cred.Gid)); err != nil {
				return fmt.Errorf("rig: %w", err)
			}
		}
		args = append(args, "--user=mysql")
	}
	cmd := exec.CommandContext(ctx, "mariadb-install-db", args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+m.tmp())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rig: mariadb-install-db: %w\n%s", err, lastBytes(out, 2000))
	}
	return nil
}

// Addr is 127.0.0.1:port.
func (m *MariaDB) Addr() string { return m.addr }

// DSN is for github.com/go-sql-driver/mysql.
func (m *MariaDB) DSN() string {
	return fmt.Sprintf("%s:%s@tcp(%s)/%s", DBUser, DBPassword, m.addr, DBName)
}

// Flags makes a role use this database. passwordFile holds DBPassword.
func (m *MariaDB) Flags(passwordFile string) []string {
	return []string{"--mysql-addr", m.addr, "--mysql-database", DBName, "--mysql-user", DBUser, "--mysql-password-file", passwordFile}
}

// Start starts a stopped server on its port and data and waits until it accepts connections.
func (m *MariaDB) Start(ctx context.Context) error {
	if err := m.Proc.Start(); err != nil {
		return err
	}
	return m.Await(ctx, "the server", func() error { return reachable(m.addr) })
}

// Stop ends the server as an operator would.
func (m *MariaDB) Stop(context.Context) error { return m.Term(30 * time.Second) }

// Backup copies the data folder to a new folder, with the server stopped for that moment, and returns its name.
func (m *MariaDB) Backup(ctx context.Context) (string, error) {
	if err := m.Stop(ctx); err != nil {
		return "", err
	}
	copied, err := os.MkdirTemp(m.dir, "backup")
	if err != nil {
		return "", err
	}
	if err := copyFolder(ctx, m.data(), copied); err != nil {
		return "", err
	}
	return copied, m.Start(ctx)
}

// Restore puts a Backup back in place of the present data, as after a lost disk. The server is away meanwhile.
func (m *MariaDB) Restore(ctx context.Context, backup string) error {
	if err := m.Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(m.data()); err != nil {
		return err
	}
	if err := copyFolder(ctx, backup, m.data()); err != nil {
		return err
	}
	return m.Start(ctx)
}

// copyFolder copies the content of one folder into another with owners and modes.
func copyFolder(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		return fmt.Errorf("rig: copy %s: %w\n%s", from, err, out)
	}
	return nil
}
