"""Errors: one type, with subclasses by the code of the server's problem."""

from __future__ import annotations

import copy
import json
import sys
from typing import Any, Dict, Mapping, Optional, TypeVar

E = TypeVar("E", bound=BaseException)

_HIDDEN = ("entry", "set")  # of a problem: they have the token of the lock


class FencepostError(Exception):
    """Why a call failed: the problem that the server sent, or one with a code of this package.

    ``problem`` has all fields of the server's problem, such as ``holders`` of ``lock_held``.
    """

    def __init__(
        self,
        code: str,
        title: str = "",
        problem: Optional[Mapping[str, Any]] = None,
        status: int = 0,
        retry_after: float = 0,
    ) -> None:
        fields = {k: v for k, v in (problem or {}).items() if k not in _HIDDEN}
        super().__init__(code, title, fields, status, retry_after)
        self.code = code
        self.title = title or str(fields.get("title", ""))
        self.problem: Dict[str, Any] = fields
        self.status = status
        self.retry_after = retry_after  #: seconds; 0 if the server does not say
        self.detail = str(fields.get("detail", ""))
        self.request_id = str(fields.get("request_id", ""))

    def __str__(self) -> str:
        text = f"{self.title}: {self.detail}" if self.detail else self.title
        known = [self.code] if self.code else []
        if self.request_id:
            known.append(f"request {self.request_id}")
        return f"{text} ({', '.join(known)})" if known else text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class LockHeld(FencepostError):
    """Another holder has the lock, and the call does not wait."""


class WaitTimeout(FencepostError):
    """The lock was not granted within the wait."""


class LockClosed(FencepostError):
    """An operator closed the lock."""


class Deadlock(FencepostError):
    """Waiting would close a cycle of holders that wait for each other."""


class Superseded(FencepostError):
    """A later request with ``only_newest`` took its place in the queue."""


class ModeMismatch(FencepostError):
    """The lock is in use as a semaphore, or not as one."""


class InvalidRequest(FencepostError):
    """An option is not valid, or the request cannot be sent, or the server does not accept it."""


class Unauthenticated(FencepostError):
    """The server does not accept the bearer token."""


class Forbidden(FencepostError):
    """The bearer token does not allow the call, or the lock's token is of another entry."""


class NotFound(FencepostError):
    """There is no such thing."""


class LimitExceeded(FencepostError):
    """A quota or a rate limit refuses the call, or the server is overloaded."""


class Unavailable(FencepostError):
    """The servers did not recover within the time of the call."""


class NoAnswer(FencepostError):
    """No server answered in time. What was asked may have taken effect.

    ``__cause__`` is the last failure, such as :class:`ConnectionRefusedError`.
    """


class Cancelled(FencepostError):
    """The client is closed."""


class BadWebhook(FencepostError):
    """A webhook is not signed with a secret of the receiver, or is not of now."""


class LockReleased(FencepostError):
    """The lock was released by this client."""


class LockLost(FencepostError):
    """The lock is not held any more, or an entry in a queue is gone.

    ``reason`` is the server's, such as ``expired`` or ``revoked``, or ``deadline`` (no renewal
    succeeded in time; ``__cause__`` is the last failure), ``closed`` (the client), ``forked``,
    ``not_granted`` (an event, or a token that was adopted).
    """

    @property
    def reason(self) -> str:
        return str(self.problem.get("reason") or "unknown")

    @property
    def revoke_reason(self) -> str:
        """What the operator said, if an operator revoked it."""
        return str(self.problem.get("revoke_reason", ""))

    def __str__(self) -> str:
        text = f"{self.title} is lost: {self.reason}"
        more = self.detail if self.reason == "deadline" else self.revoke_reason
        if more:
            text += f": {more}"
        return text + (f" (lock_lost, request {self.request_id})" if self.request_id else "")


_TYPES = {
    "lock_held": LockHeld,
    "wait_timeout": WaitTimeout,
    "lock_closed": LockClosed,
    "deadlock": Deadlock,
    "superseded": Superseded,
    "mode_mismatch": ModeMismatch,
    "lock_lost": LockLost,
    "invalid_request": InvalidRequest,
    "invalid_name": InvalidRequest,
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "token_mismatch": Forbidden,
    "not_found": NotFound,
    "quota_exceeded": LimitExceeded,
    "rate_limited": LimitExceeded,
    "overloaded": LimitExceeded,
}


def no_answer(cause: Optional[BaseException] = None, base: str = "") -> NoAnswer:
    text = ": ".join(filter(None, ("no server answered in time", base, _told(cause))))
    return caused(NoAnswer("no_answer", text), cause)


def _told(cause: Optional[BaseException]) -> str:
    """The cause in words. Only of the system's errors is it known that they have no header."""
    if cause is None:
        return ""
    text = str(cause) if isinstance(cause, (OSError, Unexpected)) else ""
    return text or type(cause).__name__


class Unexpected(Exception):
    """The answer is none of a server."""


def root(error: BaseException) -> BaseException:
    """What a chain of errors began with, alone: those of libraries know the request's headers.

    An error that the caller handles meanwhile is no part of it. httpcore cuts causes off.
    """
    handled = sys.exc_info()[1]
    while True:
        earlier = error.__cause__ or error.__context__
        if earlier is None or earlier is handled:
            break
        error = getattr(earlier, "exceptions", (earlier,))[0]  # the first of a group
    error.__context__ = None
    return error.with_traceback(None)


def again(error: FencepostError) -> FencepostError:
    """A copy to raise: an error that is raised twice would collect both tracebacks."""
    return caused(copy.copy(error), error.__cause__)


def caused(error: E, cause: Optional[BaseException]) -> E:
    if cause is not None:
        error.__cause__ = cause
    return error


def cancelled() -> Cancelled:
    return Cancelled("cancelled", "the client is closed")


def lost(name: str, reason: str, detail: str = "") -> LockLost:
    return LockLost("lock_lost", name, {"reason": reason, **({"detail": detail} if detail else {})})


def lost_of(name: str, error: FencepostError) -> LockLost:
    return LockLost("lock_lost", name, error.problem, error.status)


def recoded(error: FencepostError, code: str) -> FencepostError:
    return _TYPES[code](code, error.title, error.problem, error.status)


def error_of(status: int, retry_after: str, body: bytes) -> FencepostError:
    """The error that an answer is. One that a proxy sent has no code."""
    after = float(retry_after) if retry_after.isdecimal() else 0.0
    problem = parse(body)
    code = str(problem.get("code") or "")
    if not code:
        problem = {"title": f"the answer has the status {status}"}
    kind = _TYPES.get(code) or (Unavailable if status >= 500 else FencepostError)
    return kind(code, "", problem, status, after)


def parse(body: bytes) -> Dict[str, Any]:
    """The JSON object of a body, or an empty one."""
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
