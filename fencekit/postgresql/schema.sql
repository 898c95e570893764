-- One row for a lock: the row has the fence. Without an index on it, updates stay HOT.
ALTER TABLE account ADD COLUMN fence bigint NOT NULL DEFAULT 0;

-- Many rows for a lock, and trigger.sql. The fill factor keeps these updates HOT, too.
CREATE TABLE fences (
  name  text PRIMARY KEY, -- of the lock
  fence bigint NOT NULL
) WITH (fillfactor = 50);
