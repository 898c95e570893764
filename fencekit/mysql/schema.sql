-- One row for a lock: the row has the fence. It needs no index.
ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;

-- Many rows for a lock, and trigger.sql. Names of locks are case-sensitive.
CREATE TABLE fences (
  name  VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, -- of the lock
  fence BIGINT NOT NULL
) ENGINE = InnoDB;
