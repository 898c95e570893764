"""What callers pass: options of an acquire, claims of a set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple, Optional, TypedDict, Union
from urllib.parse import quote

from ._errors import InvalidRequest


class _Claim(TypedDict):
    name: str


class Claim(_Claim, total=False):
    """One lock of a set: ``{"name": "a", "mode": "shared"}``, or just ``"a"``."""

    mode: str
    limit: int


class ReleaseRequested(TypedDict, total=False):
    """What a waiter asks of the holder."""

    since: str
    by: str
    waiting: int
    wished_at: str


class TryOptions(TypedDict, total=False):
    """How to acquire. Durations are in seconds."""

    ttl: float  #: the lease: how long a dead holder blocks the lock; 30 by default, 2 at least
    mode: str  #: ``exclusive`` by default, ``shared``, or ``semaphore`` with a ``limit``
    limit: int  #: of a semaphore: how many may hold at once
    holder: str  #: names this worker; the server detects deadlocks among holders with a name
    metadata: Mapping[str, str]  #: shown with the lock
    #: how long before the end of the lease the work has to stop: a tenth of the TTL, at least 0.25
    margin: float
    #: called while the lock is held, when a waiter asks the holder to finish
    on_release_requested: Callable[[ReleaseRequested], object]


class Options(TryOptions, total=False):
    """How to acquire, and for how long to wait."""

    wait: float  #: how long to queue at most; 60 by default
    request_release: float  #: asks the holder to finish within this time


@dataclass(frozen=True)
class Settings:
    """Options with their defaults."""

    ttl: float = 30.0
    wait: float = 60.0
    mode: Optional[str] = None
    limit: Optional[int] = None
    holder: Optional[str] = None
    metadata: Optional[Mapping[str, str]] = None
    request_release: Optional[float] = None
    margin: Optional[float] = None
    on_release_requested: Optional[Callable[[ReleaseRequested], object]] = None

    def margin_of(self, ttl: float) -> float:
        """At most half of the lease, so that a renewal fits before the deadline."""
        margin = max(ttl / 10, 0.25) if self.margin is None else self.margin
        return min(margin, ttl / 2)

    def body(self, target: Target, wait: float) -> Dict[str, Any]:
        """What an acquire sends."""
        body: Dict[str, Any] = {"ttl_seconds": self.ttl}
        if target.claims is None:
            body.update(mode=self.mode, limit=self.limit)
        else:
            body["locks"] = target.claims
        if wait > 0:
            body["wait_seconds"] = wait
            if self.request_release is not None:
                body["request_release"] = {"within_seconds": self.request_release}
        body.update(holder=self.holder, metadata=self.metadata)
        return {name: value for name, value in body.items() if value is not None}


class Target(NamedTuple):
    """What is acquired: a lock, or a set if it has claims."""

    name: str  # of a set, all names
    claims: Optional[tuple[Claim, ...]]
    path: str  # where it is acquired

    def entry_path(self, entry: str) -> str:
        where = self.path if self.claims else f"{self.path}/entries"
        return f"{where}/{quote(entry, safe='')}"

    def held_path(self, entry: str) -> str:
        return self.path if self.claims is None else self.entry_path(entry)


def lock_path(name: str) -> str:
    if name in ("", ".", ".."):  # URLs read these as another path
        raise InvalidRequest("invalid_name", f"{name!r} is no name")
    return "/locks/" + quote(name, safe=":@=+")


def target_of(name: str) -> Target:
    return Target(name, None, lock_path(name))


def set_of(claims: Iterable[Union[Claim, str]]) -> Target:
    full = tuple(Claim(name=claim) if isinstance(claim, str) else claim for claim in claims)
    return Target(",".join(sorted(claim["name"] for claim in full)), full, "/locksets")
