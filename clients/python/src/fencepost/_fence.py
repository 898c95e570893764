"""What the guards of ASGI and WSGI share: how they read and compare the fence of a request."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from threading import Lock
from typing import Any, Callable, Dict, List, Optional, Tuple

_MAX = 2**53 - 1
_FENCE = re.compile(r"[1-9][0-9]{0,15}")
_HOST = re.compile("https?://[^/]*", re.IGNORECASE)
_SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Stale:
    """What a guard refused."""

    resource: str
    presented: int
    known: int


class Memory:
    """A ``raise_fence`` for tests, and for a single process whose data does not outlive it.

    It loses all fences at a restart, knows none of other processes, and grows with the number of
    resources.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._fences: Dict[str, int] = {}

    def __call__(self, resource: str, fence: int) -> int:
        with self._lock:
            known = max(fence, self._fences.get(resource, 0))
            self._fences[resource] = known
            return known


class Refusal(Exception):
    """An answer without the handler: a problem by RFC 9457."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, **fields: Any) -> None:
        super().__init__(code)
        problem = {"title": status.phrase, "status": status, "detail": detail, "code": code}
        self.status = status
        self.body = json.dumps({**problem, **fields}).encode()
        self.headers: List[Tuple[str, str]] = [
            ("Content-Type", "application/problem+json"),
            ("Content-Length", str(len(self.body))),
        ]


def path_of(root: str, path: str) -> str:
    """A path below a root in one spelling: routers skip slashes, and clients may send a host."""
    full = root + "/" + _HOST.sub("", path)
    return "/" + "/".join(filter(None, full.split("/")))


def read_fence(method: str, text: Optional[str], optional: bool) -> Optional[int]:
    """Returns the fence of a request, None if the request needs none, or raises a Refusal."""
    if text is None:
        if optional or method in _SAFE:
            return None
        raise Refusal(
            HTTPStatus.PRECONDITION_REQUIRED,
            "fence_required",
            "A write needs the header Fence: the fence of the lock that its client holds.",
        )
    if not _FENCE.fullmatch(text) or int(text) > _MAX:
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            "invalid_fence",
            "The header Fence is one positive integer below 2^53.",
        )
    return int(text)


def compare(stale: Stale, request: Any, on_stale: Optional[Callable[[Any, Stale], object]]) -> None:
    """Reports and refuses a fence that is smaller than the known one."""
    if stale.known <= stale.presented:
        return
    if on_stale:
        on_stale(request, stale)
    raise Refusal(
        HTTPStatus.CONFLICT,
        "stale_fence",
        f"The request has the fence {stale.presented}, and a later holder has sent {stale.known}. "
        "The client does not hold the lock.",
        fence_presented=stale.presented,
        fence_known=stale.known,
    )
