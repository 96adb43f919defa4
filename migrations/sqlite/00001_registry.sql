-- +goose Up

-- The same tables, columns and meanings as in ../mysql/00001_registry.sql; the comments there hold here too.
-- A file is one transaction here. It must fail when it runs a second time (plain CREATE and ALTER, no IF NOT EXISTS): that
-- is how two processes that migrate at once find out who was first.
-- Times are Unix µs (UTC) unless a name says otherwise; clocks and durations are µs.

CREATE TABLE stream (
  part          INTEGER NOT NULL PRIMARY KEY,
  next_offset   INTEGER NOT NULL,
  log_end       INTEGER NOT NULL,
  clock         INTEGER NOT NULL,
  pulse_session TEXT    NOT NULL,
  pulse_n       INTEGER NOT NULL,
  owner         TEXT    NOT NULL,
  updated_at    INTEGER NOT NULL
);

CREATE TABLE revision (
  id INTEGER NOT NULL PRIMARY KEY,
  n  INTEGER NOT NULL
);

INSERT INTO revision (id, n) VALUES (1, 0), (2, 0), (3, 0);

CREATE TABLE service (
  name       TEXT    NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL,
  emptied_at INTEGER NOT NULL,
  revision   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX service_revision ON service (revision);

CREATE TABLE instance (
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
CREATE INDEX instance_revision ON instance (revision);

CREATE TABLE hot (
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

CREATE TABLE address (
  addr       TEXT    NOT NULL PRIMARY KEY,
  instance   INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX address_instance ON address (instance);

CREATE TABLE route_claim (
  path       TEXT    NOT NULL PRIMARY KEY,
  service    TEXT    NOT NULL,
  claimed_at INTEGER NOT NULL,
  revision   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX route_claim_revision ON route_claim (revision);

CREATE TABLE removal (
  kind     TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE INDEX removal_revision ON removal (revision);

CREATE TABLE agent_report (
  id          INTEGER NOT NULL PRIMARY KEY,
  report      TEXT    NOT NULL,
  received_at INTEGER NOT NULL
);

CREATE TABLE event (
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
CREATE INDEX event_instance ON event (service, iid, seq);
CREATE INDEX event_time ON event (happened_at);

CREATE TABLE rejected (
  part        INTEGER NOT NULL,
  log_offset  INTEGER NOT NULL,
  record_key  TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  detail      TEXT    NOT NULL,
  value       BLOB    NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (part, log_offset)
) WITHOUT ROWID;

CREATE TABLE rejected_count (
  part   INTEGER NOT NULL,
  reason TEXT    NOT NULL,
  n      INTEGER NOT NULL,
  PRIMARY KEY (part, reason)
) WITHOUT ROWID;

CREATE TABLE lease (
  name       TEXT    NOT NULL PRIMARY KEY,
  holder     TEXT    NOT NULL,
  epoch      INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE topology_version (
  version    INTEGER NOT NULL PRIMARY KEY,
  epoch      INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  records    INTEGER NOT NULL,
  changed    INTEGER NOT NULL,
  cause      TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE topology_record (
  record_key TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  value      BLOB    NULL,
  PRIMARY KEY (record_key, version)
) WITHOUT ROWID;
CREATE INDEX topology_record_version ON topology_record (version);
