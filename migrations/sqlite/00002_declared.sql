-- +goose Up

-- See ../mysql/00002_declared.sql.
CREATE TABLE declared (
  revision          INTEGER NOT NULL PRIMARY KEY,
  name              TEXT    NOT NULL,
  body              TEXT    NULL,
  author            TEXT    NOT NULL,
  remark            TEXT    NOT NULL,
  created_at        INTEGER NOT NULL,
  registry_revision INTEGER NOT NULL
);
CREATE INDEX declared_name ON declared (name, revision);
