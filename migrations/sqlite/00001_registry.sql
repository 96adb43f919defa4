-- +goose Up

-- The same tables, columns and meanings as in ../mysql/00001_registry.sql; the comments there hold here too.
-- Times are Unix µs (UTC) unless a name says otherwise; clocks and durations are µs.

CREATE TABLE IF NOT EXISTS stream (
  part          INTEGER NOT NULL PRIMARY KEY,
  next_offset   INTEGER NOT NULL,
  log_end       INTEGER NOT NULL,
  clock         INTEGER NOT NULL,
  pulse_session TEXT    NOT NULL,
  pulse_n       INTEGER NOT NULL,
  owner         TEXT    NOT NULL,
  updated_at    INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS revision (
  id INTEGER NOT NULL PRIMARY KEY,
  n  INTEGER NOT NULL
);

INSERT OR IGNORE INTO revision (id, n) VALUES (1, 0), (2, 0), (3, 0);

CREATE TABLE IF NOT EXISTS service (
  name       TEXT    NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL,
  emptied_at INTEGER NOT NULL,
  revision   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS service_revision ON service (revision);

CREATE TABLE IF NOT EXISTS instance (
  id             INTEGER NOT NULL PRIMARY KEY,
  service        TEXT    NOT NULL,
  iid            TEXT    NOT NULL,
  incarnation    INTEGER NOT NULL,
  status         TEXT    NOT NULL,
  liveness       TEXT    NOT NULL,
  cause          TEXT    NOT NULL,
  scheme         TEXT    NOT NULL,
  ip             TEXT    NOT NULL,
  port           INTEGER NOT NULL,
  url            TEXT    NOT NULL,
  weight         INTEGER NOT NULL,
  max_conns      INTEGER NOT NULL,
  max_fails      INTEGER NOT NULL,
  fail_timeout   INTEGER NOT NULL,
  slow_start     INTEGER NOT NULL,
  zone           TEXT    NOT NULL,
  app_version    TEXT    NOT NULL,
  tags           TEXT    NOT NULL,
  meta           TEXT    NOT NULL,
  beat_interval  INTEGER NOT NULL,
  stale_after    INTEGER NOT NULL,
  unproven_clock INTEGER NOT NULL,
  stale_clock    INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  changed_at     INTEGER NOT NULL,
  revision       INTEGER NOT NULL,
  UNIQUE (service, iid)
);
CREATE INDEX IF NOT EXISTS instance_revision ON instance (revision);

CREATE TABLE IF NOT EXISTS hot (
  id          INTEGER NOT NULL PRIMARY KEY,
  part        INTEGER NOT NULL,
  clock       INTEGER NOT NULL,
  incarnation INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  skew        INTEGER NOT NULL,
  in_flight   INTEGER NOT NULL,
  rps_milli   INTEGER NOT NULL,
  latency_us  INTEGER NOT NULL,
  cpu_milli   INTEGER NOT NULL,
  memory      INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS address (
  addr       TEXT    NOT NULL PRIMARY KEY,
  instance   INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS address_instance ON address (instance);

CREATE TABLE IF NOT EXISTS route_claim (
  path       TEXT    NOT NULL PRIMARY KEY,
  service    TEXT    NOT NULL,
  claimed_at INTEGER NOT NULL,
  revision   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS route_claim_revision ON route_claim (revision);

CREATE TABLE IF NOT EXISTS removal (
  kind     TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS removal_revision ON removal (revision);

CREATE TABLE IF NOT EXISTS agent_report (
  id          INTEGER NOT NULL PRIMARY KEY,
  report      TEXT    NOT NULL,
  received_at INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS event (
  seq         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  happened_at INTEGER NOT NULL,
  kind        TEXT    NOT NULL,
  service     TEXT    NOT NULL,
  iid         TEXT    NOT NULL,
  actor       TEXT    NOT NULL,
  cause       TEXT    NOT NULL,
  detail      TEXT    NOT NULL,
  revision    INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS event_instance ON event (service, iid, seq);
CREATE INDEX IF NOT EXISTS event_time ON event (happened_at);

CREATE TABLE IF NOT EXISTS rejected (
  part        INTEGER NOT NULL,
  log_offset  INTEGER NOT NULL,
  record_key  TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  detail      TEXT    NOT NULL,
  value       BLOB    NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (part, log_offset)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS rejected_count (
  part   INTEGER NOT NULL,
  reason TEXT    NOT NULL,
  n      INTEGER NOT NULL,
  PRIMARY KEY (part, reason)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS lease (
  name       TEXT    NOT NULL PRIMARY KEY,
  holder     TEXT    NOT NULL,
  epoch      INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS role_state (
  name       TEXT    NOT NULL PRIMARY KEY,
  value      BLOB    NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS topology_version (
  version    INTEGER NOT NULL PRIMARY KEY,
  epoch      INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  records    INTEGER NOT NULL,
  changed    INTEGER NOT NULL,
  cause      TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS topology_record (
  record_key TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  value      BLOB    NULL,
  PRIMARY KEY (record_key, version)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS topology_record_version ON topology_record (version);
