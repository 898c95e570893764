"""The guard of SQL, in SQLite. The package fencekit runs the same statements in other databases."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
from types import SimpleNamespace
from typing import Any, Iterator, List, Tuple

import pytest

from fencepost.fencing import SQLGuard, StaleFence


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE fences (name TEXT PRIMARY KEY, fence INTEGER NOT NULL) STRICT")
    yield db
    db.close()


def guard(fence: int) -> SQLGuard:
    return SQLGuard("account:7", fence, "accounts", dialect="sqlite")


def test_a_later_holder_is_accepted_and_an_earlier_one_refused(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    for fence in (33, 34, 34):
        guard(fence).raise_fence(db.cursor())
    with pytest.raises(StaleFence) as refused:
        guard(33).raise_fence(db.cursor())
    assert (refused.value.presented, refused.value.known) == (33, 34)
    assert db.execute("SELECT * FROM fences").fetchall() == [("account:7", 34)]


def test_rows_may_be_dictionaries(db: sqlite3.Connection) -> None:
    db.row_factory = lambda cursor, row: {cursor.description[0][0]: row[0]}
    db.execute("BEGIN IMMEDIATE")
    guard(34).raise_fence(db.cursor())
    with pytest.raises(StaleFence):
        guard(33).raise_fence(db.cursor())


def test_a_connection_that_commits_each_statement_is_refused(db: sqlite3.Connection) -> None:
    with pytest.raises(RuntimeError, match="needs a transaction"):
        guard(34).raise_fence(db.cursor())


class Driver:
    """A cursor and its connection, with what a driver shows of a transaction."""

    def __init__(self, **shown: Any) -> None:
        self.connection = SimpleNamespace(**shown)

    def execute(self, sql: str, values: Any) -> None:
        pass

    def fetchone(self) -> Tuple[int]:
        return (34,)


def psycopg(status: int) -> Driver:
    return Driver(info=SimpleNamespace(transaction_status=status))


@pytest.mark.parametrize(
    ("commits", "open_", "dialect"),
    [
        (psycopg(0), psycopg(2), "postgresql"),
        (Driver(server_status=2), Driver(server_status=3), "mysql"),
        (Driver(in_transaction=False), Driver(in_transaction=True), "mysql"),
        (None, Driver(), "mysql"),  # nothing is known of other drivers
    ],
)
def test_drivers_that_show_a_transaction_are_asked(commits: Any, open_: Any, dialect: Any) -> None:
    by = SQLGuard("account:7", 34, "accounts", dialect)
    by.raise_fence(open_)
    if commits:
        with pytest.raises(RuntimeError, match="needs a transaction"):
            by.raise_fence(commits)


def test_an_unknown_dialect_is_an_error() -> None:
    dialect: Any
    for dialect in ("mariadb", "postgres", "", None):
        with pytest.raises(ValueError, match="is not postgresql, sqlite or mysql"):
            SQLGuard("account:7", 34, "accounts", dialect)


def test_the_other_dialects_have_the_parameters_of_their_drivers() -> None:
    for dialect, marks in (("postgresql", (2,)), ("mysql", (3, 1))):
        statements = SQLGuard("account:7", 34, "accounts", dialect).statements  # type: ignore[arg-type]
        assert [sql.count("%s") for sql, _ in statements] == list(marks)
        assert [len(values) for _, values in statements] == list(marks)


def test_a_report_has_the_lock_both_fences_and_the_resource() -> None:
    sent: List[Tuple[str, int, int, str]] = []

    class Client:
        def stale_write(self, name: str, presented: int, known: int, resource: str) -> None:
            sent.append((name, presented, known, resource))

    class AsyncClient:
        async def stale_write(self, name: str, presented: int, known: int, resource: str) -> None:
            sent.append((name, presented, known, resource))

    guard(34).check(34)
    with pytest.raises(StaleFence, match="34 of account:7 is stale: 35") as refused:
        guard(34).check(35)
    stale = pickle.loads(pickle.dumps(refused.value))  # as a worker process hands it on
    stale.report(Client())
    asyncio.run(stale.report(AsyncClient()))
    assert sent == [("account:7", 34, 35, "accounts")] * 2
