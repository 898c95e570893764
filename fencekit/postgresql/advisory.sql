-- Programs that use an advisory lock, on their way to Fencepost. New programs take both: first the
-- lock in Fencepost, then these two, first in the transaction. When no old program is left, delete
-- the first.

-- name: advisory
SELECT pg_advisory_xact_lock(:key);

-- name: raise
INSERT INTO fences (name, fence) VALUES (:lock, :fence)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence;
