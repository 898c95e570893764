"""One acquire, from its first request to its grant."""

from __future__ import annotations

import contextvars
import functools
import math
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping, Optional, Tuple, Type

from ._errors import (
    FencepostError,
    LockLost,
    Unexpected,
    lost,
    lost_of,
    no_answer,
    parse,
    recoded,
)
from ._io import IO, BlockingIO, run
from ._options import Settings, Target
from ._repeat import REQUEST_TIMEOUT, Again, Attempt, Limit, repeat
from ._system import Reading
from ._wire import Request

if TYPE_CHECKING:
    from ._base import Base

_MAX_HOLD = 50.0  # how long a server keeps a request open that waits


@dataclass
class Entry:
    """What an answer says of an entry, a lock's or a set's."""

    id: str = ""
    state: str = ""
    token: str = field(default="", repr=False)
    ttl: float = 0.0
    fences: Mapping[str, int] = field(default_factory=dict)  # by the names of the locks
    release_requested: Optional[Mapping[str, Any]] = None


def entry_of(answer: Mapping[str, Any]) -> Entry:
    locks = answer.get("locks") or [answer]
    return Entry(
        str(answer.get("id") or ""),
        str(answer.get("state") or ""),
        str(answer.get("token") or ""),
        float(answer.get("ttl_seconds") or 0),
        {str(lock.get("name")): int(lock["fence"]) for lock in locks if lock.get("fence")},
        dict(answer.get("release_requested") or {}),
    )


def renewal(target: Target, entry: Entry, ttl: float) -> Request:
    path = target.held_path(entry.id) + "/renew"
    return Request("PUT", path, min(REQUEST_TIMEOUT, ttl / 3), entry.token)


def release(target: Target, entry: Entry) -> Request:
    return Request("DELETE", target.held_path(entry.id), REQUEST_TIMEOUT, entry.token)


async def send_for_entry(a: Attempt, request: Request) -> Entry:
    """Sends a request whose answer is an entry. Another success is no answer."""
    answer = parse((await a.send(request)).body)
    with suppress(AttributeError, LookupError, OverflowError, TypeError, ValueError):
        entry = entry_of(answer)
        if entry.token and 0 < entry.ttl < math.inf:
            return entry
    raise a.failed(Unexpected("what answered is no server"))


class Acquisition:
    """One acquire from its first request to its grant.

    It goes on over lost answers, replicas that drain, and requests that end before the wait does.
    """

    def __init__(self, client: Base, target: Target, settings: Settings) -> None:
        self.client = client
        self.target = target
        self.settings = settings
        self.entry = Entry()  # once it is known, with its token
        self.is_async = False  # the servers keep the entry while its client does not ask for it
        self.callback: Optional[str] = None  # where they report its grant
        self._wait = settings.wait
        self._begun = client.read()
        self._leaves = False  # the call is over, and its entry is taken back
        self._restart()

    def __enter__(self) -> Acquisition:
        self.client.begin()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        """A call that fails or is cancelled takes back what it may have left."""
        try:
            if kind is not None:
                self.leave_later()
        finally:
            self.client.end()

    def _restart(self) -> None:
        """Makes the next request a new entry."""
        self._key = secrets.token_hex(16)
        self._first: Optional[Reading] = None  # when the key was sent first
        self.entry = Entry()
        self._unknown = False  # a request may have written an entry whose token is not known

    async def run(self, io: IO) -> Tuple[Entry, Reading]:
        """Returns the grant, and when the request was sent from which its lease counts."""
        return await repeat(self.client, io, Limit(self._left), self._attempt)

    async def _attempt(self, a: Attempt) -> Tuple[Entry, Reading]:
        """A grant that may be old is renewed before it counts."""
        if self.entry.state != "held":
            await self.next(a)
        since = self._first
        if since is None or self._elapsed(since) > self.ttl / 3:
            since = self.client.read()
            await self._send(a, renewal(self.target, self.entry, self.ttl))
            if self.entry.state != "held":
                raise lost(self.target.name, "not_granted")
        self._first = None  # a grant that is waited for again has to be renewed first
        return self.entry, since

    def _elapsed(self, since: Reading) -> float:
        return self.client.read().since(since)

    def _waits(self) -> float:
        """How much of the wait is left."""
        return self._wait - self._elapsed(self._begun)

    def _left(self) -> float:
        return self._waits() + self.client.retry_for

    @property
    def ttl(self) -> float:
        return self.entry.ttl or self.settings.ttl

    async def next(self, a: Attempt) -> None:
        """One attempt to acquire, or to wait further.

        It returns if the entry holds, or if it waits and the call does not.
        """
        sent = self.client.read()
        if self._first is None:
            self._first = sent
        request = self._request()
        await self._send(a, request)
        queued = self.is_async and request.method == "POST"
        if self.entry.state == "held" or self._leaves or queued:
            return
        # One that is answered too soon would be sent in a loop.
        raise Again(no_answer(), stays=True, goes=self._elapsed(sent) >= 1)

    def _request(self) -> Request:
        """The one that is due: an acquire until the token is known, then one that waits on."""
        hold = min(self._waits(), _MAX_HOLD)
        if self.entry.token:
            seconds = whole(max(hold, 1))
            path = f"{self.target.entry_path(self.entry.id)}?wait_seconds={seconds}"
            return Request("GET", path, seconds + REQUEST_TIMEOUT, self.entry.token)
        body = self.settings.body(self.target, self._wait)
        if self.is_async:
            hold = 0.0
            body["async"] = True
            if self.callback is not None:
                body["callback_url"] = self.callback
        prefer = ""
        if self._leaves:  # the token is needed, not the grant
            hold, prefer = 0.0, "wait=0"
        timeout = max(hold, 0) + REQUEST_TIMEOUT
        return Request("POST", self.target.path, timeout, key=self._key, prefer=prefer, body=body)

    async def _send(self, a: Attempt, request: Request) -> None:
        """Sends a request about the entry, and takes from its answer what it says of it."""
        try:
            self.entry = await send_for_entry(a, request)
            self._unknown = False
        except Again as again:
            self._learn(again)
            raise
        except FencepostError as error:
            if error.status in (409, 410, 423):
                self._unknown = False
                if not self.is_async:  # of an async entry the servers are asked again
                    self.entry = Entry()  # nothing is left in the queue
            if error.code == "lock_lost":
                self._ended(error)
            raise
        except BaseException:  # the call is cancelled, and the request may be carried out
            self._unknown = not self.entry.token
            raise

    def _learn(self, again: Again) -> None:
        """Takes the entry from the answer of a replica that hands it over.

        Where there is none, the request may have written one all the same.
        """
        if again.handed:
            self.entry, self._unknown = entry_of(again.handed), False
            self.entry.state = ""  # its grant has to be asked for
        error = again.error
        effect = error.problem.get("may_have_taken_effect", True)
        if not self.entry.token and error.status != 429 and effect:
            self._unknown = True

    def _ended(self, error: FencepostError) -> None:
        """Raises what the end of the entry means for the call.

        One that expired because no request reached a server in time is acquired again, while the
        call may still wait.
        """
        lost = lost_of(self.target.name, error)
        if lost.reason in ("wait_timeout", "deadlock", "superseded", "mode_mismatch"):
            raise recoded(error, lost.reason)
        if lost.reason not in ("expired", "unknown") or self.is_async or self._leaves:
            raise lost
        if self._wait > 0:
            waits = self._waits()
            if waits <= 0:
                raise lost
            self._wait, self._begun = whole(waits), self.client.read()
        self._restart()
        raise Again(lost, stays=True)

    def leave_later(self) -> None:
        """Takes back what a failed call may have left in the queue, for at most one TTL.

        What it cannot take back expires, one TTL after the last request that waited.
        """
        if not self.entry.token and not self._unknown:
            return
        self._leaves = True
        limit = self.client.within(self.ttl, leaving=True)

        def leave() -> None:
            with suppress(FencepostError):  # the lease is the limit
                run(repeat(self.client, BlockingIO(self.client.wire), limit, self.leave))

        self.client.spawn(functools.partial(contextvars.copy_context().run, leave), leaves=True)

    async def leave(self, a: Attempt) -> None:
        """One attempt to release the entry.

        If its token is not known, the acquire is repeated first: the same key is the same entry.
        """
        if not self.entry.token:
            await self.next(a)
        await a.send(release(self.target, self.entry))

    async def leave_now(self, io: IO) -> None:
        self.client.opened()
        self.client.begin()
        try:
            with suppress(LockLost):
                limit = self.client.within(self.ttl, leaving=True)
                await repeat(self.client, io, limit, self.leave)
        finally:
            self.client.end()


def whole(seconds: float) -> int:
    """Whole seconds, rounded up; a nanosecond too much is none."""
    return int(-(-(seconds - 1e-9) // 1))
