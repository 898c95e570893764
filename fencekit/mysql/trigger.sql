-- For programs that you cannot change: the session has the lock and its fence, for example by the
-- client's init-command "SET @fencepost_lock = 'account:7', @fencepost_fence = 34". Without them,
-- writes fail.
DELIMITER //
CREATE PROCEDURE check_fence()
BEGIN
  DECLARE known BIGINT;
  DECLARE refusal VARCHAR(100);
  INSERT INTO fences (name, fence) VALUES (@fencepost_lock, @fencepost_fence)
  ON DUPLICATE KEY UPDATE fence = GREATEST(fence, @fencepost_fence + 0);
  SELECT fence INTO known FROM fences WHERE name = @fencepost_lock FOR UPDATE;
  IF known > @fencepost_fence THEN
    SET refusal = CONCAT('stale_fence: ', known);
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = refusal;
  END IF;
END //

-- For each table:
CREATE TRIGGER account_insert BEFORE INSERT ON account FOR EACH ROW CALL check_fence() //
CREATE TRIGGER account_update BEFORE UPDATE ON account FOR EACH ROW CALL check_fence() //
CREATE TRIGGER account_delete BEFORE DELETE ON account FOR EACH ROW CALL check_fence() //
DELIMITER ;
