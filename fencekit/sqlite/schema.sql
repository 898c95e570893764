-- One row for a lock: the row has the fence.
ALTER TABLE account ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;

-- Many rows for a lock, and trigger.sql.
CREATE TABLE fences (
  name  TEXT PRIMARY KEY, -- of the lock
  fence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
