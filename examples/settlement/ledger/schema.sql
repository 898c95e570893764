-- One row per accepted write, in the order in which it was accepted, never
-- changed. A row with an empty invoice opens a batch: it moves no money, but it
-- makes its fence the newest of the lock before anything is read.
--
-- There is deliberately no unique key on the invoice alone: instalments,
-- refunds and corrections are further rows for the same invoice.
CREATE TABLE IF NOT EXISTS journal (
  seq          INTEGER PRIMARY KEY AUTOINCREMENT,
  lock         TEXT    NOT NULL,
  fence        INTEGER NOT NULL CHECK (fence > 0),
  invoice      TEXT    NOT NULL,
  amount_cents INTEGER NOT NULL,
  worker       TEXT    NOT NULL,
  UNIQUE (lock, fence, invoice)
) STRICT;

-- What was refused, kept for the account only; no decision reads it.
CREATE TABLE IF NOT EXISTS refusals (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  lock    TEXT    NOT NULL,
  fence   INTEGER NOT NULL,
  known   INTEGER NOT NULL,
  invoice TEXT    NOT NULL,
  worker  TEXT    NOT NULL
) STRICT;
