"""Compares the fence of a holder in the transaction that writes.

The tables are in fencekit. For PostgreSQL, MySQL, MariaDB and SQLite::

    guard = SQLGuard(held.name, held.fence, "accounts", dialect="sqlite")
    try:
        with db:
            db.execute("BEGIN IMMEDIATE")
            guard.raise_fence(db.cursor())  # before the transaction reads or writes anything else
            db.execute("UPDATE account SET balance = ? WHERE id = ?", (balance, 7))
    except StaleFence as stale:
        stale.report(client)  # after the transaction: the client retries
        raise
"""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar

__all__ = ["SQLGuard", "StaleFence"]

_Answer = TypeVar("_Answer", covariant=True)

_RAISE = """INSERT INTO fences (name, fence) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE
SET fence = CASE WHEN fences.fence < excluded.fence THEN excluded.fence ELSE fences.fence END
RETURNING fence"""

_RAISE_MYSQL = """INSERT INTO fences (name, fence) VALUES (%s, %s)
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, %s + 0)"""

_RAISED_MYSQL = "SELECT fence FROM fences WHERE name = %s FOR UPDATE"


class Client(Protocol[_Answer]):
    """A ``Fencepost``, or an ``AsyncFencepost``, whose calls are awaited."""

    def stale_write(
        self, name: str, fence_presented: int, fence_known: int, resource: str
    ) -> _Answer: ...


class StaleFence(Exception):
    """A later holder of the lock has written: roll back, and stop."""

    def __init__(self, lock: str, presented: int, known: int, resource: str) -> None:
        super().__init__(lock, presented, known, resource)
        self.lock = lock
        self.presented = presented  #: the fence of the refused holder
        self.known = known  #: the greatest that the resource has seen
        self.resource = resource

    def __str__(self) -> str:
        return f"the fence {self.presented} of {self.lock} is stale: {self.known} has written"

    def report(self, client: Client[_Answer]) -> _Answer:
        """Shows the refused write to operators. With an ``AsyncFencepost``, await it."""
        return client.stale_write(self.lock, self.presented, self.known, self.resource)


class SQLGuard:
    """Compares the fence of a grant with the greatest that a database has seen.

    ``resource`` is what the lock protects, for reports. It is no secret. ``mysql`` is for MariaDB,
    too.
    """

    def __init__(
        self,
        lock: str,
        fence: int,
        resource: str,
        dialect: Literal["postgresql", "sqlite", "mysql"] = "postgresql",
    ) -> None:
        if dialect not in ("postgresql", "sqlite", "mysql"):
            raise ValueError(f"fencepost: {dialect!r} is not postgresql, sqlite or mysql")
        self.lock = lock
        self.fence = fence
        self.resource = resource
        self.dialect = dialect

    @property
    def statements(self) -> Sequence[Tuple[str, Tuple[Any, ...]]]:
        """What ``raise_fence`` executes. The last statement returns the fence for ``check``.

        For an asynchronous driver, such as psycopg's: await each of them, in a transaction.
        """
        if self.dialect == "mysql":
            return (
                (_RAISE_MYSQL, (self.lock, self.fence, self.fence)),
                (_RAISED_MYSQL, (self.lock,)),
            )
        sql = _RAISE.replace("%s", "?") if self.dialect == "sqlite" else _RAISE
        return ((sql, (self.lock, self.fence)),)

    def raise_fence(self, cursor: Any) -> None:
        """Raises the fence of the lock in the table of fences, first in the transaction.

        It locks the row until the transaction ends. ``cursor`` is one of the DB-API, which gives
        rows as sequences or as dictionaries.

        :raises StaleFence: a later holder has written
        :raises RuntimeError: the connection commits each statement, so that the lock protects
            nothing (as far as the driver shows it: sqlite3, psycopg, mysql.connector, PyMySQL)
        """
        for sql, values in self.statements:
            cursor.execute(sql, values)
        row = cursor.fetchone()
        if _in_transaction(getattr(cursor, "connection", None)) is False:
            raise RuntimeError(
                "fencepost: the guard needs a transaction, and the connection has none"
            )
        self.check(row["fence"] if isinstance(row, Mapping) else row[0])

    def check(self, known: int) -> None:
        """Raises ``StaleFence`` if ``known`` is greater than the fence of the guard.

        For a fence in a row of your own: read it if a conditional UPDATE affected no row.
        """
        if known > self.fence:
            raise StaleFence(self.lock, self.fence, known, self.resource)


def _in_transaction(connection: Any) -> Optional[bool]:
    """Whether a statement has left a transaction open, or None if the driver does not show it."""
    if hasattr(connection, "in_transaction"):  # sqlite3, mysql.connector
        return bool(connection.in_transaction)
    status = getattr(getattr(connection, "info", None), "transaction_status", None)  # psycopg
    if status is None and isinstance(getattr(connection, "server_status", None), int):
        status = connection.server_status & 1  # PyMySQL
    return None if status is None else bool(status)
