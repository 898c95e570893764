"""Attempts: which failures are tried again, where, and after what pause."""

from __future__ import annotations

import random
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Dict,
    Mapping,
    NamedTuple,
    Optional,
    TypeVar,
)

import httpx

from ._errors import (
    Cancelled,
    FencepostError,
    InvalidRequest,
    Unexpected,
    cancelled,
    error_of,
    no_answer,
    parse,
    root,
)
from ._io import IO
from ._wire import Answer, Request, TokenFailed

if TYPE_CHECKING:
    from ._base import Base

T = TypeVar("T")

REQUEST_TIMEOUT = 10.0  # of one attempt that does not wait for a lock
_FIRST_PAUSE = 0.2
_MAX_PAUSE = 5.0
_MIN_PAUSE = 0.1  # while a lock is held


class Again(Exception):
    """An attempt after which another one may succeed."""

    def __init__(
        self,
        error: FencepostError,
        after: float = 0.0,
        stays: bool = False,
        goes: bool = False,
        usual: bool = False,
        handed: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__()
        self.error = error
        self.after = after  # seconds before the next one; 0 is as the client likes
        self.stays = stays  # at this URL: the server works, and refuses
        self.goes = goes  # nothing failed: the next attempt is due now
        self.usual = usual  # no reason for a warning
        self.handed = handed  # the entry that a replica hands over


def backoff(pauses: int) -> float:
    """The pause after so many others, in seconds."""
    pause = min(_FIRST_PAUSE * 2.0 ** min(pauses, 10), _MAX_PAUSE)
    return pause * random.uniform(0.5, 1)


class Limit(NamedTuple):
    """How long a call may take."""

    left: Callable[[], float]
    held: bool = False  # it is the deadline of a held lock: pauses are shortened to fit
    leaves: bool = False  # the call takes back an entry

    @property
    def ends(self) -> bool:
        """Whether the close of the client ends the call."""
        return not (self.held or self.leaves)

    def pause(self, asked: float, pauses: int) -> float:
        pause = asked or backoff(pauses)
        if self.held:
            pause = min(pause, max(self.left() / 3, _MIN_PAUSE))
        return pause


class Attempt(NamedTuple):
    """One try at one URL."""

    client: Base
    io: IO
    base: str
    limit: Limit

    async def send(self, request: Request) -> Answer:
        """Returns a success. The error is one to try again after, or final."""
        timeout = max(min(request.timeout, self.limit.left()), 0.001)
        failure: Optional[Exception] = None
        try:
            answer = await self.io.send(self.base, request, timeout)
        except Exception as error:
            failure = error
        if failure is not None:  # raised here: the context of an error is shown with it
            raise self.failed(failure)
        self.answered(answer)
        return answer

    def answered(self, answer: Answer) -> None:
        """Raises what an answer that is no success means."""
        if answer.status < 500:
            self.client.failing = False
        refuse(answer)

    def failed(self, failure: Exception) -> Exception:
        """What the failure of a request means: only what may succeed later is tried again."""
        if isinstance(failure, Cancelled):  # by close, and the request may be carried out
            return Again(failure)
        if isinstance(failure, FencepostError):
            return failure
        if isinstance(failure, TokenFailed):
            return Again(no_answer(failure.__cause__, "the function for the token failed"))
        if isinstance(failure, (OSError, Unexpected)) or (
            isinstance(failure, httpx.TransportError)
            and not isinstance(failure, (httpx.LocalProtocolError, httpx.UnsupportedProtocol))
        ):
            return Again(no_answer(root(failure), self.base))
        text = f"the request cannot be sent: {type(failure).__name__}"
        return InvalidRequest("invalid_request", text)


def refuse(answer: Answer) -> None:
    if answer.status < 300:
        return
    error = error_of(*answer)
    if answer.status == 429 and error.retry_after > 0:
        raise Again(error, error.retry_after, stays=True)
    if answer.status >= 500:
        problem = parse(answer.body)
        handed = problem.get("entry") or problem.get("set")
        raise Again(error, error.retry_after, handed=handed)
    raise error


async def repeat(
    client: Base, io: IO, limit: Limit, attempt: Callable[[Attempt], Awaitable[T]]
) -> T:
    """Makes attempts until one succeeds or fails for good, or the limit has come.

    After a failure the next attempt is at the next URL at once; after all have failed, after a
    pause. The close of the client ends it.
    """
    if not limit.ends:
        return await _repeat(client, io, limit, attempt)
    with client.ending(io):
        return await _repeat(client, io, limit, attempt)


async def _repeat(
    client: Base, io: IO, limit: Limit, attempt: Callable[[Attempt], Awaitable[T]]
) -> T:
    failures = pauses = 0
    last: FencepostError = no_answer()
    while limit.left() > 0:
        at = client.current
        try:
            return await attempt(Attempt(client, io, client.urls[at], limit))
        except Again as failed:
            again = failed
        if io.aborted:
            raise cancelled()
        if again.goes:
            failures = pauses = 0
            continue
        last = again.error
        if not again.stays:
            client.move_on(at, None if again.usual else last)
            failures += 1
            if failures % len(client.urls):
                continue
        pause = limit.pause(again.after, pauses)
        pauses += 1
        if pause >= limit.left():
            break
        await io.sleep(pause)
        if io.aborted:
            raise cancelled()
    raise last


async def ask(client: Base, io: IO, request: Request) -> Dict[str, Any]:
    """Sends a request until a server answers it for good, with an object or nothing."""

    async def attempt(a: Attempt) -> Dict[str, Any]:
        answer = await a.send(request)
        value = parse(answer.body)
        if not value and answer.status != 204:
            raise a.failed(Unexpected("what answered is no server"))
        return value

    return await repeat(client, io, client.within(client.retry_for), attempt)
