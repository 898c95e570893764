package io.github.fencepost.fencing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.junit.jupiter.api.Test;

/** The guard in SQLite. The package fencekit runs the same statements in other databases. */
class SqlGuardTest {
  @Test
  void laterHolderIsAcceptedAndEarlierOneRefused() throws SQLException {
    try (Connection db = DriverManager.getConnection("jdbc:sqlite::memory:")) {
      db.createStatement().execute("CREATE TABLE fences (name TEXT PRIMARY KEY, fence INTEGER)");
      db.setAutoCommit(false);
      for (long fence : new long[] {33, 34, 34}) {
        guard(fence).raise(db);
      }
      db.commit();
      StaleFenceException refused =
          assertThrows(StaleFenceException.class, () -> guard(33).raise(db));
      db.rollback();
      assertEquals("the fence 33 of account:7 is stale: 34 has written", refused.getMessage());
      assertEquals(33, refused.write().presented());
      assertEquals(34, refused.write().known());
      ResultSet row = db.createStatement().executeQuery("SELECT fence FROM fences");
      assertEquals(34, row.getLong(1));
    }
  }

  @Test
  void connectionWithoutATransactionIsRefused() throws SQLException {
    try (Connection db = DriverManager.getConnection("jdbc:sqlite::memory:")) {
      db.createStatement().execute("CREATE TABLE fences (name TEXT PRIMARY KEY, fence INTEGER)");
      assertThrows(IllegalStateException.class, () -> guard(33).raise(db));
      assertFalse(db.createStatement().executeQuery("SELECT fence FROM fences").next());
    }
  }

  private static SqlGuard guard(long fence) {
    return new SqlGuard("account:7", fence, "accounts", SqlGuard.Dialect.SQLITE);
  }
}
