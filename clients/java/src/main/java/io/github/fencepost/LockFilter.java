package io.github.fencepost;

/** Selects locks that are in use. Each method returns a filter that differs in one thing. */
public final class LockFilter {
  private final Query query;

  private LockFilter(Query query) {
    this.query = query;
  }

  /**
   * Selects all locks that are in use.
   *
   * @return the filter
   */
  public static LockFilter all() {
    return new LockFilter(Query.of("/locks"));
  }

  /**
   * Selects the locks whose names begin so.
   *
   * @param prefix of the names
   * @return the filter
   */
  public LockFilter prefix(String prefix) {
    return new LockFilter(query.with("prefix", prefix));
  }

  /**
   * Selects the locks that are in a state.
   *
   * @param state held or contended
   * @return the filter
   */
  public LockFilter state(String state) {
    return new LockFilter(query.with("state", state));
  }

  Query query() {
    return query;
  }
}
