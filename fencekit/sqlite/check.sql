-- One row for a lock. Each of the first two: no row means that a later holder was here. Stop.

-- name: read
UPDATE account SET fence = :fence
WHERE id = :id AND fence <= :fence
RETURNING balance;

-- name: write
UPDATE account SET balance = :balance, fence = :fence
WHERE id = :id AND fence <= :fence;

-- name: known
SELECT fence FROM account WHERE id = :id;

-- Many rows for a lock: raise is the first statement after BEGIN IMMEDIATE. If it returns a
-- greater fence than yours, a later holder was here: roll back.

-- name: raise
INSERT INTO fences (name, fence) VALUES (:lock, :fence)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence;
