-- UPDATE counts rows that it changed, or rows that matched: the driver decides (CLIENT_FOUND_ROWS).
-- A repeated write changes nothing. So compare the fence after each statement, and not its count:
-- if the fence is greater than yours, a later holder was here. Stop.

-- One row for a lock.

-- name: claim
UPDATE account SET fence = :fence WHERE id = :id AND fence <= :fence;

-- name: read
SELECT balance, fence FROM account WHERE id = :id;

-- name: write
UPDATE account SET balance = :balance, fence = :fence WHERE id = :id AND fence <= :fence;

-- Only if write affected no row. FOR UPDATE reads the newest fence in each isolation level.

-- name: known
SELECT fence FROM account WHERE id = :id FOR UPDATE;

-- Many rows for a lock: these are the first statements of the transaction. If a driver sends the
-- fence as text, MySQL 8 compares texts, and '9' is greater than 10: + 0 makes it a number.

-- name: raise
INSERT INTO fences (name, fence) VALUES (:lock, :fence)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, :fence + 0);

-- name: raised
SELECT fence FROM fences WHERE name = :lock FOR UPDATE;

-- A holder that is stopped inside a transaction blocks the next one. This ends it.

-- name: limit
SET SESSION wait_timeout = 5;
