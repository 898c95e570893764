-- The store of the guard in PostgreSQL and SQLite. The statement is atomic, and returns the
-- greatest fence.
CREATE TABLE fences (
  resource text PRIMARY KEY,
  fence    bigint NOT NULL
);

-- name: raise
INSERT INTO fences (resource, fence) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence;
