"""What calls return that look, as the server sends it. Fields that do not apply are missing."""

from __future__ import annotations

from typing import Any, Dict, List, TypedDict


class Holder(TypedDict, total=False):
    """An entry that holds a lock."""

    holder: str
    since: str
    expires_at: str
    fence: int
    mode: str
    limit: int
    permits: int
    metadata: Dict[str, str]


class Waiter(TypedDict, total=False):
    """An entry in the queue of a lock."""

    position: int
    holder: str
    mode: str
    limit: int
    permits: int
    enqueued_at: str
    waited_seconds: float
    metadata: Dict[str, str]


class LockSummary(TypedDict, total=False):
    """A lock in a list."""

    name: str
    state: str
    holders: List[Holder]
    waiting: int
    fence: int


class Lock(TypedDict, total=False):
    """A lock with its holders and its waiters in order. A free lock has none."""

    name: str
    holders: List[Holder]
    waiters: List[Waiter]
    waiting: int
    fence: int
    permits_held: int
    limits: List[int]
    figures: Dict[str, Any]
    revision: int
