-- +goose Up

-- Times are Unix µs (UTC) unless a name says otherwise; clocks and durations are µs.
-- Every statement can be run again: MySQL commits each of them at once, so a crash may leave some of them done.

-- pulse_n -1 without a session: the log is read again, and the clock stands until its end is reached.
CREATE TABLE IF NOT EXISTS stream (
  part          INT          NOT NULL PRIMARY KEY,
  next_offset   BIGINT       NOT NULL,
  log_end       BIGINT       NOT NULL,
  clock         BIGINT       NOT NULL,
  pulse_session VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  pulse_n       BIGINT       NOT NULL,
  owner         VARCHAR(128) NOT NULL,
  updated_at    BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Locked by every transaction that changes routing or writes an event, so both are numbered in commit order.
-- id 1: the registry revision; 2: the revision up to which Changes may have forgotten something; 3: the last dense key.
CREATE TABLE IF NOT EXISTS revision (
  id TINYINT NOT NULL PRIMARY KEY,
  n  BIGINT  NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO revision (id, n) VALUES (1, 0), (2, 0), (3, 0);

CREATE TABLE IF NOT EXISTS service (
  name       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  created_at BIGINT NOT NULL,
  emptied_at BIGINT NOT NULL,
  revision   BIGINT NOT NULL,
  KEY service_revision (revision)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What changes routing. Written on a join, a change or a departure only. id is dense, in order of first appearance.
-- unproven_clock and stale_clock: its partition's clock when it became that.
CREATE TABLE IF NOT EXISTS instance (
  id             BIGINT       NOT NULL PRIMARY KEY,
  service        VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  iid            VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  incarnation    BIGINT       NOT NULL,
  status         VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  liveness       VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  cause          VARCHAR(255) NOT NULL,
  scheme         VARCHAR(8)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  ip             VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  port           INT          NOT NULL,
  url            VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  weight         INT          NOT NULL,
  max_conns      INT          NOT NULL,
  max_fails      INT          NOT NULL,
  fail_timeout   BIGINT       NOT NULL,
  slow_start     BIGINT       NOT NULL,
  zone           VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  app_version    VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  tags           TEXT         NOT NULL,
  meta           TEXT         NOT NULL,
  beat_interval  BIGINT       NOT NULL,
  stale_after    BIGINT       NOT NULL,
  unproven_clock BIGINT       NOT NULL,
  stale_clock    BIGINT       NOT NULL,
  created_at     BIGINT       NOT NULL,
  changed_at     BIGINT       NOT NULL,
  revision       BIGINT       NOT NULL,
  UNIQUE KEY instance_name (service, iid),
  KEY instance_revision (revision)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Written by every beat: narrow, dense key, no other index.
CREATE TABLE IF NOT EXISTS hot (
  id          BIGINT NOT NULL PRIMARY KEY,
  part        INT    NOT NULL,
  clock       BIGINT NOT NULL,
  incarnation BIGINT NOT NULL,
  seq         BIGINT NOT NULL,
  received_at BIGINT NOT NULL,
  skew        BIGINT NOT NULL,
  in_flight   INT    NOT NULL,
  rps_milli   INT    NOT NULL,
  latency_us  INT    NOT NULL,
  cpu_milli   INT    NOT NULL,
  memory      BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One address, one owner, across all services.
CREATE TABLE IF NOT EXISTS address (
  addr       VARCHAR(80) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  instance   BIGINT NOT NULL,
  claimed_at BIGINT NOT NULL,
  KEY address_instance (instance)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS route_claim (
  path       VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  service    VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  claimed_at BIGINT NOT NULL,
  revision   BIGINT NOT NULL,
  KEY route_claim_revision (revision)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Services and claims that are gone, so that a reader of changes learns of it.
CREATE TABLE IF NOT EXISTS removal (
  kind     VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name     VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  revision BIGINT NOT NULL,
  PRIMARY KEY (kind, name),
  KEY removal_revision (revision)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What agents (services named upstrand-…) say of themselves.
CREATE TABLE IF NOT EXISTS agent_report (
  id          BIGINT NOT NULL PRIMARY KEY,
  report      TEXT   NOT NULL,
  received_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS event (
  seq         BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
  happened_at BIGINT       NOT NULL,
  kind        VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  service     VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  iid         VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor       VARCHAR(128) NOT NULL,
  cause       VARCHAR(255) NOT NULL,
  detail      TEXT         NOT NULL,
  revision    BIGINT       NOT NULL,
  KEY event_instance (service, iid, seq),
  KEY event_time (happened_at)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Records of the heartbeat topic that could not be used, bounded.
CREATE TABLE IF NOT EXISTS rejected (
  part        INT          NOT NULL,
  log_offset  BIGINT       NOT NULL,
  record_key  VARCHAR(255) NOT NULL,
  reason      VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  detail      VARCHAR(1024) NOT NULL,
  value       BLOB         NOT NULL,
  received_at BIGINT       NOT NULL,
  PRIMARY KEY (part, log_offset)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS rejected_count (
  part   INT         NOT NULL,
  reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  n      BIGINT      NOT NULL,
  PRIMARY KEY (part, reason)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lease (
  name       VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  holder     VARCHAR(128) NOT NULL,
  epoch      BIGINT       NOT NULL,
  expires_at BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS topology_version (
  version    BIGINT       NOT NULL PRIMARY KEY,
  epoch      BIGINT       NOT NULL,
  digest     CHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  records    INT          NOT NULL,
  changed    INT          NOT NULL,
  cause      VARCHAR(1024) NOT NULL,
  revision   BIGINT       NOT NULL,
  created_at BIGINT       NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Every version's changed records: the content of version V is, per key, the newest row up to V (NULL: gone).
CREATE TABLE IF NOT EXISTS topology_record (
  record_key VARCHAR(400) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  version    BIGINT NOT NULL,
  value      MEDIUMBLOB NULL,
  PRIMARY KEY (record_key, version),
  KEY topology_record_version (version)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
