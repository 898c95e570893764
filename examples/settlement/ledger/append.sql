INSERT INTO journal (lock, fence, invoice, amount_cents, worker)
SELECT :lock, :fence, :invoice, :amount_cents, :worker
WHERE :unchecked OR :fence >= (SELECT coalesce(max(fence), 0) FROM journal WHERE lock = :lock)
ON CONFLICT (lock, fence, invoice) DO NOTHING
