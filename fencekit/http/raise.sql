-- The store of the guard in PostgreSQL and SQLite. The statement is atomic, and returns the
-- greatest fence.
CREATE TABLE fences (
  name  text PRIMARY KEY, -- of the resource
  fence bigint NOT NULL
);

-- name: raise
INSERT INTO fences (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence;
