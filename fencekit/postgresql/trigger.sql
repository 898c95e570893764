-- For programs that you cannot change: the session has the lock and its fence, for example by
-- PGOPTIONS='-c fencepost.lock=account:7 -c fencepost.fence=34'. Without them, writes fail.
CREATE FUNCTION check_fence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lock  text   := current_setting('fencepost.lock');
  mine  bigint := current_setting('fencepost.fence');
  known bigint;
BEGIN
  INSERT INTO fences AS f (name, fence) VALUES (lock, mine)
  ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE f.fence < excluded.fence;
  SELECT fence INTO known FROM fences WHERE name = lock; -- locked by the INSERT in any case
  IF known > mine THEN
    RAISE EXCEPTION 'stale_fence: % is below %', mine, known
      USING ERRCODE = 'FP409', DETAIL = known::text;
  END IF;
  RETURN NULL;
END $$;

-- For each table:
CREATE TRIGGER check_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON account
FOR EACH STATEMENT EXECUTE FUNCTION check_fence();
