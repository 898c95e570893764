"""What requests are sent, when, and what their answers mean."""

from __future__ import annotations

import contextvars
import random
import secrets
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Awaitable,
    Callable,
    Dict,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    TypeVar,
)

from ._errors import (
    FencepostError,
    LockLost,
    error_of,
    lost_of,
    no_answer,
    parse,
    recoded,
)
from ._http import IO, Answer, BlockingIO, Request, run
from ._options import Settings, Target
from ._system import Reading

if TYPE_CHECKING:
    from ._client import Base

T = TypeVar("T")

REQUEST_TIMEOUT = 10.0  # of one attempt that does not wait for a lock
_MAX_HOLD = 50.0  # how long a server keeps a request open that waits
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
        handed: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__()
        self.error = error
        self.after = after  # seconds before the next one; 0 is as the client likes
        self.stays = stays  # at this URL: the server works, and refuses
        self.goes = goes  # nothing failed: the next attempt is due now
        self.handed = handed  # the entry that a replica hands over


class Limit(NamedTuple):
    """How long a call may take."""

    left: Callable[[], float]
    held: bool = False  # it is the deadline of a held lock: pauses are shortened to fit

    def pause(self, asked: float, pauses: int) -> float:
        pause = asked
        if not pause:
            pause = min(_FIRST_PAUSE * 2 ** min(pauses, 10), _MAX_PAUSE)
            pause *= random.uniform(0.5, 1)
        if self.held:
            pause = min(pause, max(self.left() / 3, _MIN_PAUSE))
        return pause


class Attempt(NamedTuple):
    """One try at one URL."""

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
        if failure is not None:  # raised here, without the cause: it knows the headers
            raise Again(no_answer(failure))
        refuse(answer)
        return answer

    async def send_for_entry(self, request: Request) -> Entry:
        entry = entry_of(parse((await self.send(request)).body))
        if not entry.token:
            raise Again(no_answer(ValueError("what answered is no server")))
        return entry


def refuse(answer: Answer) -> None:
    """Raises what an answer that is no success means."""
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
    pause.
    """
    failures = pauses = 0
    last: FencepostError = no_answer()
    while limit.left() > 0:
        at = client.current
        try:
            return await attempt(Attempt(io, client.urls[at], limit))
        except Again as failed:
            again = failed
        if again.goes:
            failures = pauses = 0
            continue
        last = again.error
        if not again.stays:
            client.move_on(at)
            failures += 1
            if failures % len(client.urls):
                continue
        pause = limit.pause(again.after, pauses)
        pauses += 1
        if pause >= limit.left():
            break
        await io.sleep(pause)
    raise last


async def ask(client: Base, io: IO, request: Request) -> Dict[str, Any]:
    """Sends a request until a server answers it for good."""

    async def attempt(a: Attempt) -> Answer:
        return await a.send(request)

    answer = await repeat(client, io, client.within(client.retry_for), attempt)
    return parse(answer.body)


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
        answer.get("release_requested"),
    )


def renewal(target: Target, entry: Entry) -> Request:
    path = target.held_path(entry.id) + "/renew"
    return Request("PUT", path, min(REQUEST_TIMEOUT, entry.ttl / 3), entry.token)


def release(target: Target, entry: Entry) -> Request:
    return Request("DELETE", target.held_path(entry.id), REQUEST_TIMEOUT, entry.token)


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

    def _restart(self) -> None:
        """Makes the next request a new entry."""
        self._key = secrets.token_hex(16)
        self._first: Optional[Reading] = None  # when the key was sent first
        self.entry = Entry()
        self._unknown = False  # a request may have written an entry whose token is not known

    async def run(self, io: IO) -> Tuple[Entry, Reading]:
        """Returns the grant, and when the request was sent from which its lease counts."""
        return await repeat(self.client, io, Limit(self._left), self._attempt)

    async def run_or_leave(self, io: IO) -> Tuple[Entry, Reading]:
        try:
            return await self.run(io)
        except BaseException:
            self.leave_later()
            raise

    async def _attempt(self, a: Attempt) -> Tuple[Entry, Reading]:
        """A grant that may be old is renewed before it counts."""
        if self.entry.state != "held":
            await self.next(a)
        since = self._first
        if since is None or self._elapsed(since) > self.ttl / 3:
            since = self.client.read()
            await self._send(a, renewal(self.target, self.entry))
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
        timeout = max(hold, 0) + REQUEST_TIMEOUT
        return Request("POST", self.target.path, timeout, key=self._key, body=body)

    async def _send(self, a: Attempt, request: Request) -> None:
        """Sends a request about the entry, and takes from its answer what it says of it."""
        try:
            self.entry = await a.send_for_entry(request)
            self._unknown = False
        except Again as again:
            self._learn(again)
            raise
        except FencepostError as error:
            if error.status in (409, 410, 423):  # nothing is left in the queue
                self._unknown, self.entry = False, Entry(self.entry.id)
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
        if lost.reason in ("wait_timeout", "deadlock", "mode_mismatch"):
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
        if (not self.entry.token and not self._unknown) or not self.client.begin():
            return
        self._leaves = True
        limit = self.client.within(self.ttl, leaving=True)
        context = contextvars.copy_context()

        def leave() -> None:
            try:
                run(repeat(self.client, BlockingIO(self.client.wire), limit, self.leave))
            except FencepostError:
                pass  # the lease is the limit
            finally:
                self.client.end()

        self.client.system.spawn(lambda: context.run(leave))

    async def leave(self, a: Attempt) -> None:
        """One attempt to release the entry.

        If its token is not known, the acquire is repeated first: the same key is the same entry.
        """
        if not self.entry.token:
            await self.next(a)
        await a.send(release(self.target, self.entry))

    async def leave_now(self, io: IO) -> None:
        try:
            await repeat(self.client, io, self.client.within(self.ttl), self.leave)
        except LockLost:
            pass
        except FencepostError as error:
            if error.code != "lock_lost":
                raise


def whole(seconds: float) -> int:
    """Whole seconds, rounded up; a nanosecond too much is none."""
    return int(-(-(seconds - 1e-9) // 1))
