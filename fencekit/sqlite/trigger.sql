-- For code that you cannot change: where the connection is opened, define the functions fence_lock()
-- and fence(), which return the lock and its fence. Without them, or with NULL, writes fail. For
-- each table:
CREATE TRIGGER account_insert BEFORE INSERT ON account BEGIN
  INSERT INTO fences (name, fence) VALUES (fence_lock(), fence())
  ON CONFLICT (name) DO UPDATE SET fence = max(fences.fence, excluded.fence);
  SELECT RAISE(ABORT, 'stale_fence')
  WHERE NOT EXISTS (SELECT 1 FROM fences WHERE name = fence_lock() AND fence <= fence());
END;

CREATE TRIGGER account_update BEFORE UPDATE ON account BEGIN
  INSERT INTO fences (name, fence) VALUES (fence_lock(), fence())
  ON CONFLICT (name) DO UPDATE SET fence = max(fences.fence, excluded.fence);
  SELECT RAISE(ABORT, 'stale_fence')
  WHERE NOT EXISTS (SELECT 1 FROM fences WHERE name = fence_lock() AND fence <= fence());
END;

CREATE TRIGGER account_delete BEFORE DELETE ON account BEGIN
  INSERT INTO fences (name, fence) VALUES (fence_lock(), fence())
  ON CONFLICT (name) DO UPDATE SET fence = max(fences.fence, excluded.fence);
  SELECT RAISE(ABORT, 'stale_fence')
  WHERE NOT EXISTS (SELECT 1 FROM fences WHERE name = fence_lock() AND fence <= fence());
END;
