-- +goose Up

-- What operators declared, as the text of named files, with all that ever stood in them. revision numbers the changes of
-- the whole set, so the content of a name is its newest row (body NULL: it was deleted), and that of the set as of revision
-- R is, per name, the newest row up to R. registry_revision is the registry's, raised in the same transaction.
CREATE TABLE IF NOT EXISTS declared (
  revision          BIGINT        NOT NULL PRIMARY KEY,
  name              VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  body              MEDIUMTEXT    NULL,
  author            VARCHAR(128)  NOT NULL,
  remark            VARCHAR(1024) NOT NULL,
  created_at        BIGINT        NOT NULL,
  registry_revision BIGINT        NOT NULL,
  KEY declared_name (name, revision)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
