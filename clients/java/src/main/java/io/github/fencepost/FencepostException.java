package io.github.fencepost;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Why a call failed: the problem that the server sent, or one with a code of the client. There is a
 * subclass for each code that programs react to. The others are of this class.
 */
@SuppressWarnings("serial") // what is not serializable is transient
public class FencepostException extends RuntimeException {
  private static final Map<String, Function<Problem, FencepostException>> BY_CODE =
      Map.of(
          "lock_held", LockHeld::new,
          "wait_timeout", WaitTimeout::new,
          "lock_closed", LockClosed::new,
          "deadlock", Deadlock::new,
          "superseded", Superseded::new,
          "mode_mismatch", ModeMismatch::new,
          "no_answer", NoAnswer::new,
          "cancelled", Cancelled::new,
          "bad_webhook", BadWebhook::new);

  /** Code of the problem. */
  private final String code;

  /** Status of the answer. */
  private final int status;

  private final transient Problem problem; // null after a serialization

  FencepostException(Problem problem) {
    super(problem.message());
    this.code = problem.code;
    this.status = problem.status;
    this.problem = problem;
  }

  FencepostException(String code, String message) {
    super(message);
    this.code = code;
    this.status = 0;
    this.problem = null;
  }

  static FencepostException of(Problem problem) {
    return BY_CODE.getOrDefault(problem.code, FencepostException::new).apply(problem);
  }

  static FencepostException of(String code, String title) {
    return of(Problem.of(code, title));
  }

  static FencepostException noAnswer(Throwable cause) {
    return noAnswer("", cause);
  }

  /** Returns a failure to get an answer from a URL. */
  static FencepostException noAnswer(String base, Throwable cause) {
    String at = base.isEmpty() ? "" : ": " + base + ": " + words(cause);
    FencepostException e = of("no_answer", "no server answered in time" + at);
    e.initCause(cause);
    return e;
  }

  /** Java's HTTP client leaves the message to causes. */
  private static String words(Throwable cause) {
    Throwable deepest = cause;
    while (deepest.getMessage() == null && deepest.getCause() != null) {
      deepest = deepest.getCause();
    }
    String text = deepest.getMessage();
    return cause.getClass().getSimpleName() + (text == null ? "" : ": " + text);
  }

  static FencepostException invalid(String why) {
    return of("invalid_request", why);
  }

  static FencepostException cancelled(String why) {
    return of("cancelled", why);
  }

  /** Returns this problem with its reason as the code. */
  FencepostException byReason() {
    return of(problem.withCode(reason()));
  }

  /**
   * Returns the code of the problem, such as {@code lock_held}.
   *
   * @return the code; empty if a proxy answered
   */
  public String code() {
    return code;
  }

  /**
   * Returns the status of the answer.
   *
   * @return the status; 0 if no server sent the problem
   */
  public int status() {
    return status;
  }

  /**
   * Returns what is wrong with this request, for a person.
   *
   * @return the detail; may be empty
   */
  public String detail() {
    return field("detail");
  }

  /**
   * Returns what finds the request in the server's log.
   *
   * @return the id; may be empty
   */
  public String requestId() {
    return field("request_id");
  }

  /**
   * Returns why a lock is closed, in an operator's words, or why an entry is gone.
   *
   * @return the reason; may be empty
   */
  public String reason() {
    return field("reason");
  }

  /**
   * Returns when the server expects that a retry succeeds.
   *
   * @return the time from the answer on; zero if the server does not say
   */
  public Duration retryAfter() {
    return problem == null ? Duration.ZERO : problem.retryAfter;
  }

  /**
   * Returns the holders of the lock, with {@code lock_held} and {@code wait_timeout}.
   *
   * @return at most 100 holders
   */
  public List<Holder> holders() {
    return problem == null ? List.of() : Json.objects(problem.body, "holders", Holder::new);
  }

  /**
   * Returns another field of the problem, such as {@code quota}.
   *
   * @param name of the field
   * @return its text, or its JSON if it is no text; empty if there is none
   */
  public String field(String name) {
    return problem == null ? "" : problem.field(name);
  }

  /** The lock is held, and the call does not wait. */
  public static final class LockHeld extends FencepostException {
    private LockHeld(Problem problem) {
      super(problem);
    }
  }

  /** The lock was not granted within the wait. */
  public static final class WaitTimeout extends FencepostException {
    private WaitTimeout(Problem problem) {
      super(problem);
    }
  }

  /** An operator closed the lock. */
  public static final class LockClosed extends FencepostException {
    private LockClosed(Problem problem) {
      super(problem);
    }
  }

  /** Waiting would close a cycle of waits. */
  public static final class Deadlock extends FencepostException {
    private Deadlock(Problem problem) {
      super(problem);
    }
  }

  /** A later call with {@link LockOptions#onlyNewest} took its place in the queue. */
  public static final class Superseded extends FencepostException {
    private Superseded(Problem problem) {
      super(problem);
    }
  }

  /** The lock is in use as a semaphore, or not as one. */
  public static final class ModeMismatch extends FencepostException {
    private ModeMismatch(Problem problem) {
      super(problem);
    }
  }

  /** No server answered in time. The request may have taken effect. */
  public static final class NoAnswer extends FencepostException {
    private NoAnswer(Problem problem) {
      super(problem);
    }
  }

  /** The calling thread was interrupted, or the client was closed. */
  public static final class Cancelled extends FencepostException {
    private Cancelled(Problem problem) {
      super(problem);
    }
  }

  /** A webhook has no signature of these secrets, or is not of now. */
  public static final class BadWebhook extends FencepostException {
    private BadWebhook(Problem problem) {
      super(problem);
    }
  }
}
