package io.github.fencepost;

import java.time.Duration;

/**
 * A lock is not held any more, or an entry in a queue is gone. Work under the lock has to stop. To
 * go on, acquire again: the fence is then greater. Its code is {@code lock_lost}.
 */
@SuppressWarnings("serial")
public final class LockLostException extends FencepostException {
  /** The reason if no renewal succeeded in time. */
  public static final String DEADLINE = "deadline";

  /** The reason if the client was closed. */
  public static final String CLOSED = "closed";

  /** The reason if an event is no grant that can be claimed. */
  public static final String NOT_GRANTED = "not_granted";

  /** Name of the lock. */
  private final String lock;

  /** Reason of the server or the client. */
  private final String reason;

  /** Reason of the operator. */
  private final String revokeReason;

  /** Id of the request that learned it. */
  private final String requestId;

  private LockLostException(String lock, String reason, String revokeReason, String requestId) {
    super("lock_lost", message(lock, reason, revokeReason, requestId));
    this.lock = lock;
    this.reason = reason;
    this.revokeReason = revokeReason;
    this.requestId = requestId;
  }

  private LockLostException(String message, LockLostException like, Throwable cause) {
    super("lock_lost", message);
    lock = like.lock;
    reason = like.reason;
    revokeReason = like.revokeReason;
    requestId = like.requestId;
    initCause(cause);
  }

  LockLostException(String lock, String reason) {
    this(lock, reason, "", "");
  }

  /** Returns one for a lock that was not renewed in time; last is the newest failure, or null. */
  static LockLostException deadline(String lock, Duration since, FencepostException last) {
    LockLostException e = new LockLostException(lock, DEADLINE);
    String message = e.getMessage() + ": no renewal succeeded for " + since.toMillis() / 1000.0
        + " s" + (last == null ? "" : ", and the last error is: " + last.getMessage());
    return new LockLostException(message, e, last);
  }

  /** Reads why an entry is gone. */
  static LockLostException of(String lock, FencepostException e) {
    String reason = e.reason().isEmpty() ? "unknown" : e.reason();
    return new LockLostException(lock, reason, e.field("revoke_reason"), e.requestId());
  }

  /** Returns one for another throw: try-with-resources cannot suppress an exception by itself. */
  LockLostException copy() {
    return new LockLostException(getMessage(), this, getCause());
  }

  private static String message(String lock, String reason, String revoked, String request) {
    return lock + " is lost: " + reason
        + (revoked.isEmpty() ? "" : ": " + revoked)
        + (request.isEmpty() ? "" : " (lock_lost, request " + request + ")");
  }

  /**
   * Returns the name of the lock.
   *
   * @return the name; of a set, the names with commas in between
   */
  public String lock() {
    return lock;
  }

  /**
   * Returns what the server says, such as {@code expired} or {@code revoked}, or a reason of this
   * class.
   *
   * @return the reason
   */
  @Override
  public String reason() {
    return reason;
  }

  /**
   * Returns what the operator said who revoked the entry.
   *
   * @return the operator's reason; may be empty
   */
  public String revokeReason() {
    return revokeReason;
  }

  @Override
  public String requestId() {
    return requestId;
  }
}
