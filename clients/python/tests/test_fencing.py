"""The guard of SQL, in SQLite. The package fencekit runs the same statements in other databases."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
from typing import List, Tuple

import pytest

from fencepost.fencing import SQLGuard, StaleFence


@pytest.fixture
def db() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE fences (name TEXT PRIMARY KEY, fence INTEGER NOT NULL) STRICT")
    return db


def guard(fence: int) -> SQLGuard:
    return SQLGuard("account:7", fence, "accounts", dialect="sqlite")


def test_a_later_holder_is_accepted_and_an_earlier_one_refused(db: sqlite3.Connection) -> None:
    for fence in (33, 34, 34):
        guard(fence).raise_fence(db.cursor())
    with pytest.raises(StaleFence) as refused:
        guard(33).raise_fence(db.cursor())
    assert (refused.value.presented, refused.value.known) == (33, 34)
    assert db.execute("SELECT * FROM fences").fetchall() == [("account:7", 34)]


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
