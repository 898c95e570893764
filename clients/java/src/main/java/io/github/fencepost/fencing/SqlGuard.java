package io.github.fencepost.fencing;

import io.github.fencepost.StaleWrite;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Objects;

/**
 * Compares the fence of a grant with the greatest that a database has seen, in the transaction that
 * writes. The tables are in fencekit.
 */
public final class SqlGuard {
  /** Variant of SQL. */
  public enum Dialect {
    /** PostgreSQL. */
    POSTGRESQL,
    /** SQLite. */
    SQLITE,
    /** MySQL and MariaDB. */
    MYSQL
  }

  private static final String RAISE = "INSERT INTO fences (name, fence) VALUES (?, ?)"
      + " ON CONFLICT (name) DO UPDATE"
      + " SET fence = CASE WHEN fences.fence < excluded.fence"
      + " THEN excluded.fence ELSE fences.fence END"
      + " RETURNING fence";

  private static final String RAISE_MYSQL = "INSERT INTO fences (name, fence) VALUES (?, ?)"
      + " ON DUPLICATE KEY UPDATE fence = GREATEST(fence, ? + 0)";

  private static final String RAISED_MYSQL = "SELECT fence FROM fences WHERE name = ? FOR UPDATE";

  private final String lock;
  private final long fence;
  private final String resource;
  private final Dialect dialect;

  /**
   * Returns a guard.
   *
   * @param lock is the name of the lock, and of its row in the table of fences
   * @param fence of the grant
   * @param resource is what the lock protects, for reports; it is no secret
   * @param dialect of the database
   */
  public SqlGuard(String lock, long fence, String resource, Dialect dialect) {
    this.lock = Objects.requireNonNull(lock, "lock");
    this.fence = fence;
    this.resource = Objects.requireNonNull(resource, "resource");
    this.dialect = Objects.requireNonNull(dialect, "dialect");
  }

  /**
   * Raises the fence of the lock in the table of fences, and locks its row until the transaction
   * ends. Call it before the transaction reads or writes anything else.
   *
   * @param transaction is a connection without auto-commit
   * @throws StaleFenceException if a later holder was here: roll back
   * @throws IllegalStateException if the connection commits each statement by itself
   * @throws SQLException of the database
   */
  public void raise(Connection transaction) throws SQLException {
    if (transaction.getAutoCommit()) {
      throw new IllegalStateException("there is no transaction: call setAutoCommit(false) first");
    }
    if (dialect != Dialect.MYSQL) {
      compare(transaction, RAISE, lock, fence);
      return;
    }
    try (PreparedStatement statement = prepare(transaction, RAISE_MYSQL, lock, fence, fence)) {
      statement.executeUpdate();
    }
    compare(transaction, RAISED_MYSQL, lock);
  }

  /**
   * Compares a fence in a row of your own: read it if a conditional UPDATE affected no row.
   *
   * @param known is the fence in the row
   * @throws StaleFenceException if it is greater than that of the guard
   */
  public void check(long known) {
    if (known > fence) {
      throw new StaleFenceException(
          StaleWrite.of(lock).presented(fence).known(known).resource(resource));
    }
  }

  private void compare(Connection on, String sql, Object... values) throws SQLException {
    try (PreparedStatement statement = prepare(on, sql, values);
        ResultSet rows = statement.executeQuery()) {
      rows.next();
      check(rows.getLong(1));
    }
  }

  private static PreparedStatement prepare(Connection on, String sql, Object... values)
      throws SQLException {
    PreparedStatement statement = on.prepareStatement(sql);
    for (int i = 0; i < values.length; i++) {
      statement.setObject(i + 1, values[i]);
    }
    return statement;
  }
}
