"""What callers pass: options of an acquire, claims of a set."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Literal,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    TypedDict,
    Union,
)
from urllib.parse import quote

from ._errors import InvalidRequest

Mode = Literal["exclusive", "shared", "semaphore"]


class _Claim(TypedDict):
    name: str


class Claim(_Claim, total=False):
    """One lock of a set: ``{"name": "a", "mode": "shared"}``, or just ``"a"``."""

    mode: Mode
    limit: int
    permits: int


@dataclass(frozen=True)
class ReleaseRequested:
    """What a waiter asks of the holder."""

    since: datetime
    by: str
    waiting: int
    wished_at: Optional[datetime]  #: when it wants the lock; None if it named no time


OnReleaseRequested = Callable[[ReleaseRequested], object]


def release_requested(asked: Mapping[str, Any]) -> ReleaseRequested:
    wished = asked.get("wished_at")
    return ReleaseRequested(
        time_of(asked["since"]),
        str(asked.get("by") or ""),
        int(asked.get("waiting") or 0),
        time_of(wished) if wished else None,
    )


def time_of(text: str) -> datetime:
    """A time of RFC 3339. Python 3.9 reads neither Z nor a fraction of all lengths."""
    text = re.sub(r"\.(\d+)", lambda found: "." + found[1][:6].ljust(6, "0"), text)
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 <= value < math.inf


def _is_texts(value: Any) -> bool:
    pairs = value.items() if isinstance(value, Mapping) else [(0, 0)]
    return all(isinstance(text, str) for pair in pairs for text in pair)


_SECONDS = (_is_seconds, "a number of seconds")
_COUNT = (lambda value: isinstance(value, int) and value > 0, "a whole number from 1")
_CHECKS: Mapping[str, Tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("ttl", "wait", "request_release", "margin", "at_least"), _SECONDS),
    "mode": (lambda value: isinstance(value, str), "a text"),
    **dict.fromkeys(("limit", "permits"), _COUNT),
    "only_newest": (lambda value: isinstance(value, bool), "True or False"),
    "holder": (lambda value: isinstance(value, str), "a text"),
    "metadata": (_is_texts, "a dictionary of texts"),
    "on_release_requested": (callable, "a function"),
}


def seconds(name: str, value: Any) -> float:
    """Returns a number of seconds, or raises ValueError for what is none, such as a timedelta."""
    if not _is_seconds(value):
        raise ValueError(_wrong(name, value, _SECONDS[1]))
    return float(value)


def _wrong(name: str, value: Any, want: str) -> str:
    given = value if isinstance(value, (int, float)) else type(value).__name__
    return f"fencepost: {name} is {want}, not {given}"


@dataclass(frozen=True)
class Settings:
    """Options of an acquire with their defaults. Those that cannot be sent are refused."""

    ttl: float = 30.0
    wait: float = 60.0
    mode: Mode = "exclusive"
    limit: Optional[int] = None
    permits: Optional[int] = None
    holder: Optional[str] = None
    metadata: Optional[Mapping[str, str]] = None
    request_release: Optional[float] = None
    margin: Optional[float] = None
    on_release_requested: Optional[OnReleaseRequested] = None
    at_least: float = 0.0
    only_newest: bool = False

    def __post_init__(self) -> None:
        for name, (fits, want) in _CHECKS.items():
            value, optional = getattr(self, name), getattr(Settings, name) is None
            if not (fits(value) or (optional and value is None)):
                raise InvalidRequest("invalid_request", _wrong(name, value, want))

    def margin_of(self, ttl: float) -> float:
        """At most half of the lease, so that a renewal fits before the deadline."""
        margin = max(ttl / 10, 0.25) if self.margin is None else self.margin
        return min(margin, ttl / 2)

    def body(self, target: Target, wait: float) -> Dict[str, Any]:
        """What an acquire sends."""
        body: Dict[str, Any] = {"ttl_seconds": self.ttl}
        if target.claims is None:
            body.update(mode=self.mode if self.mode != "exclusive" else None)
            body.update(limit=self.limit, permits=self.permits)
        else:
            body.update(locks=target.claims, any=target.k)
        if wait > 0:
            body["wait_seconds"] = wait
            if self.request_release is not None:
                body["request_release"] = {"within_seconds": self.request_release}
        body.update(
            only_newest=self.only_newest or None,
            holder=self.holder,
            metadata=self.metadata and dict(self.metadata),
        )
        return {name: value for name, value in body.items() if value is not None}


class Target(NamedTuple):
    """What is acquired: a lock, or a set if it has claims."""

    name: str  # of a set, all names
    claims: Optional[tuple[Claim, ...]]
    path: str  # where it is acquired
    k: Optional[int] = None  # how many of the claims suffice; None is all

    def kept(self, names: Iterable[str]) -> Target:
        """What is held after a grant of these locks."""
        return self if self.k is None else self._replace(name=_names(names))

    def entry_path(self, entry: str) -> str:
        where = self.path if self.claims else f"{self.path}/entries"
        return f"{where}/{quote(entry, safe='')}"

    def held_path(self, entry: str) -> str:
        return self.path if self.claims is None else self.entry_path(entry)


def lock_path(name: str) -> str:
    try:
        if name not in ("", ".", ".."):  # URLs read these as another path
            return "/locks/" + quote(name, safe=":@=+")
    except (TypeError, UnicodeError):
        pass
    raise InvalidRequest("invalid_name", f"fencepost: {name!r} is no name")


def target_of(name: str) -> Target:
    return Target(name, None, lock_path(name))


def set_of(claims: Iterable[Union[Claim, str]], k: Optional[int] = None) -> Target:
    full = tuple(Claim(name=claim) if isinstance(claim, str) else claim for claim in claims)
    if isinstance(claims, str) or not all(isinstance(claim, Mapping) for claim in full):
        raise InvalidRequest("invalid_request", "fencepost: a set is a list of names and claims")
    if k is not None and not _COUNT[0](k):
        raise InvalidRequest("invalid_request", _wrong("k", k, _COUNT[1]))
    return Target(_names(str(claim.get("name")) for claim in full), full, "/locksets", k)


def _names(names: Iterable[str]) -> str:
    return ",".join(sorted(names))
