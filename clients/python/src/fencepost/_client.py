"""The clients: :class:`Fencepost` for threads, :class:`AsyncFencepost` for asyncio."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Iterable,
    Iterator,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
)
from urllib.parse import urlencode, urlsplit

from ._errors import Cancelled, FencepostError, LockLost, lost
from ._events import Event, Stream, events_path
from ._held import Acquiring, AsyncHeld, AsyncPending, Held, Lease, Pending
from ._http import IO, AsyncIO, BlockingIO, Propagate, Request, Token, Wire, iterate, run
from ._look import Lock, LockSummary
from ._options import Claim, Options, Settings, Target, TryOptions, lock_path, set_of, target_of
from ._protocol import REQUEST_TIMEOUT, Acquisition, Entry, Limit, ask, entry_of, repeat
from ._system import Reading, System, Timer

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")

_WATCH_EVERY = 1.0  # seconds
_WATCH_SLACK = 0.05
_CLOSE_TIMEOUT = 2.0  # how long close lets calls that were cancelled leave their queues


class Base:
    """What both clients have in common."""

    def __init__(
        self,
        urls: Union[str, Sequence[str]],
        token: Token,
        *,
        retry_for: float = 30.0,
        propagate: Optional[Propagate] = None,
        verify: Optional[ssl.SSLContext] = None,
        proxy: Optional[str] = None,
        _system: Optional[System] = None,
    ) -> None:
        """Sends no request.

        ``urls`` are base addresses of replicas, or of what balances requests over them. The client
        uses one of them until it fails, then the next. ``token`` is the bearer token, or a
        function that returns it for each request; any thread may call it.

        ``retry_for`` is how long a call repeats a request that the servers do not answer, beyond
        the time that it waits for a lock. ``propagate`` adds headers to a request, such as
        ``opentelemetry.propagate.inject``.
        """
        self.urls = [_base_url(url) for url in ([urls] if isinstance(urls, str) else urls)]
        if not self.urls:
            raise ValueError("fencepost: a URL is required")
        self.retry_for = retry_for
        self.system = _system or System()
        self.wire = Wire(self.system, token, propagate, verify, proxy)
        self.current = 0  # index of the URL in use
        self._pid = 0
        self._begin_again()

    def _begin_again(self) -> None:
        """Begins without locks and tasks, also in the child of a fork: threads are not there."""
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._closed = False
        self._over = False  # what leaves queues has to stop
        self._held: Set[Lease] = set()
        self._tasks = 0  # renewals, and requests that leave a queue after a cancelled call
        self._watch: Optional[Timer] = None
        self._last = self.read()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.urls!r})"

    def read(self) -> Reading:
        return self.system.read()

    def blocking(self) -> BlockingIO:
        if os.getpid() != self._pid:
            self._begin_again()
        return BlockingIO(self.wire)

    def awaiting(self) -> AsyncIO:
        raise NotImplementedError

    def within(self, seconds: float, leaving: bool = False) -> Limit:
        """Limits a call to a time from now on."""
        begun = self.read()
        return Limit(lambda: 0.0 if leaving and self._over else seconds - self.read().since(begun))

    def move_on(self, at: int) -> None:
        """Passes over a URL that failed, unless another call has done so."""
        with self._mutex:
            if self.current == at:
                self.current = (at + 1) % len(self.urls)

    def begin(self) -> bool:
        """Counts a task that close waits for. It reports false after close."""
        with self._mutex:
            if not self._closed:
                self._tasks += 1
            return not self._closed

    def end(self) -> None:
        with self._mutex:
            self._tasks -= 1

    def spawn(self, work: Callable[[], None]) -> None:
        if not self.begin():
            return

        def counted() -> None:
            try:
                work()
            finally:
                self.end()

        self.system.spawn(counted)

    def keep(self, lease: Lease) -> bool:
        """Watches the clocks for a held lock. It reports false after close."""
        now = self.read()
        with self._mutex:
            if self._closed:
                return False
            self._held.add(lease)
            if self._watch is None:
                self._last = now
                self._watch = self.system.call_later(_WATCH_EVERY, self._look)
        return True

    def drop(self, lease: Lease) -> None:
        with self._mutex:
            self._held.discard(lease)

    def _look(self) -> None:
        """Looks whether the machine was suspended: timers stand still then, and have to be set."""
        now = self.read()
        with self._mutex:
            slept = now.since(self._last) - (now.monotonic - self._last.monotonic)
            self._last = now
            held = list(self._held) if slept > _WATCH_SLACK else []
            self._watch = None
            if self._held:
                self._watch = self.system.call_later(_WATCH_EVERY, self._look)
        for lease in held:
            lease._look()

    def acquisition(self, target: Target, options: Dict[str, Any]) -> Acquisition:
        if self._closed and os.getpid() == self._pid:
            raise Cancelled("cancelled", "the client is closed")
        return Acquisition(self, target, Settings(**options))

    def claimed(self, event: Event, options: Dict[str, Any]) -> Acquisition:
        """The acquisition that claims a grant: a renewal is all that it sends."""
        entry = event.data.get("entry") or {}
        names = event.data.get("locks")
        target = set_of(names) if names else target_of(str(event.data.get("lock")))
        if event.type != "lock.acquired" or not entry.get("token"):
            raise lost(target.name, "not_granted")
        options["wait"] = float(entry["ttl_seconds"])  # it can be claimed for so long
        acquisition = self.acquisition(target, options)
        acquisition.is_async = True
        acquisition.entry = entry_of({**entry, "locks": None, "state": "held"})
        return acquisition

    def queued(
        self, name: str, callback_url: Optional[str], options: Dict[str, Any]
    ) -> Acquisition:
        acquisition = self.acquisition(target_of(name), options)
        acquisition.is_async = True
        acquisition.callback = callback_url
        return acquisition

    async def enqueue(self, acquisition: Acquisition, io: IO) -> None:
        try:
            await repeat(self, io, self.within(self.retry_for), acquisition.next)
        except BaseException:
            acquisition.leave_later()
            raise

    def wait_for(self, acquisition: Acquisition) -> Any:
        raise NotImplementedError

    async def pages(self, io: IO, prefix: str, state: str) -> AsyncIterator[LockSummary]:
        query = {name: value for name, value in (("prefix", prefix), ("state", state)) if value}
        while True:
            path = "/locks" + ("?" + urlencode(query, safe=":") if query else "")
            page = await ask(self, io, Request("GET", path, REQUEST_TIMEOUT))
            for lock in page.get("locks", ()):
                yield lock
            if not page.get("next_cursor"):
                return
            query["cursor"] = page["next_cursor"]

    async def look_at(self, io: IO, name: str) -> Lock:
        answer = await ask(self, io, Request("GET", lock_path(name), REQUEST_TIMEOUT))
        return cast(Lock, answer)

    async def report(self, io: IO, name: str, presented: int, known: int, resource: str) -> None:
        body = {"fence_presented": presented, "fence_known": known, "resource": resource}
        path = lock_path(name) + "/stale-writes"
        await ask(self, io, Request("POST", path, REQUEST_TIMEOUT, body=body))

    async def shut(self, io: IO) -> None:
        with self._mutex:
            self._closed = True
            held, self._held = self._held, set()
        for lease in held:
            lease.end(lost(lease.name, "closed"))
        begun = self.read()
        while self._tasks and self.read().since(begun) < _CLOSE_TIMEOUT:
            await io.sleep(0.02)
        self._over = True
        self.wire.close()


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ValueError("fencepost: this is no base URL: " + repr(parts._replace(netloc="…")))
    return url.rstrip("/")


def _passes(error: FencepostError) -> bool:
    """Whether a later acquire may succeed."""
    if isinstance(error, LockLost) or error.code == "no_answer":
        return True
    return error.status in (423, 429) or error.status >= 500


class Fencepost(Base):
    """Acquires locks. Any thread may use it.

    ::

        with Fencepost(url, token).lock("orders:42", ttl=30, wait=60) as held:
            db.execute("UPDATE … WHERE id = %s AND fence <= %s", (id, held.fence))
    """

    def lock(self, name: str, **options: Unpack[Options]) -> Held:
        """Acquires a lock and waits for it. The client renews it until it is released.

        An exception in the call, such as ``KeyboardInterrupt``, leaves the queue in the
        background. If that reaches no server, the entry expires with its TTL.
        """
        return self._acquire(target_of(name), dict(options))

    def try_lock(self, name: str, **options: Unpack[TryOptions]) -> Held:
        """Acquires a lock if it is free now, or raises :class:`LockHeld`."""
        return self._acquire(target_of(name), {**options, "wait": 0.0})

    def lock_set(self, claims: Iterable[Union[Claim, str]], **options: Unpack[Options]) -> Held:
        """Acquires all locks at once, or none. The order of claims does not matter."""
        return self._acquire(set_of(claims), dict(options))

    def try_lock_set(
        self, claims: Iterable[Union[Claim, str]], **options: Unpack[TryOptions]
    ) -> Held:
        """Acquires all locks if they are free now, or raises :class:`LockHeld`."""
        return self._acquire(set_of(claims), {**options, "wait": 0.0})

    def _acquire(self, target: Target, options: Dict[str, Any]) -> Held:
        io = self.blocking()
        acquisition = self.acquisition(target, options)
        return self._hold(acquisition, run(acquisition.run_or_leave(io)))

    def _hold(self, acquisition: Acquisition, grant: Tuple[Entry, Reading]) -> Held:
        held = Held(self, acquisition.target, grant[0], acquisition.settings, grant[1])
        held.start()
        return held

    def async_acquire(
        self, name: str, callback_url: Optional[str] = None, **options: Unpack[Options]
    ) -> Pending:
        """Queues for a lock and returns at once; the lock may also be granted at once.

        With ``callback_url`` the servers report the grant there, or the end of the entry, signed
        with the tenant's callback secret. ``ttl`` has to be at least 15.
        """
        io = self.blocking()
        acquisition = self.queued(name, callback_url, dict(options))
        run(self.enqueue(acquisition, io))
        return Pending(acquisition)

    def wait_for(self, acquisition: Acquisition) -> Held:
        return self._hold(acquisition, run(acquisition.run(self.blocking())))

    def claim(self, event: Event, **options: Unpack[TryOptions]) -> Held:
        """Takes the grant that a callback reported, see :func:`verify_webhook`.

        It raises :class:`LockLost` if the lock has passed on meanwhile. A callback may come twice:
        pass over an event whose id you have seen, two claims would both count as the holder.
        """
        io = self.blocking()
        acquisition = self.claimed(event, dict(options))
        return self._hold(acquisition, run(acquisition.run(io)))

    def lead(self, name: str, work: Callable[[Held], T], **options: Unpack[Options]) -> T:
        """Campaigns for a lock and calls ``work`` while this process is the leader.

        The term is ``held.fence``. When the lock is lost, ``work`` has to return or raise; then
        ``lead`` campaigns again. If it ends while the lock is held, ``lead`` resigns and returns
        its result. A refusal such as ``forbidden`` ends the campaign.
        """
        pauses = 0
        while True:
            try:
                held = self.lock(name, **options)
            except FencepostError as error:
                if not _passes(error):
                    raise
            else:
                pauses = 0
                try:
                    with held:
                        return work(held)
                except Exception:
                    if not held.is_lost:
                        raise
            self.system.sleep(Limit(lambda: 0.0).pause(0.0, pauses))
            pauses += 1

    def look(self, name: str) -> Lock:
        """Returns a lock with its holders and waiters."""
        return run(self.look_at(self.blocking(), name))

    def list(self, prefix: str = "", state: str = "") -> Iterator[LockSummary]:
        """Iterates over the locks in use whose names begin with ``prefix``, in byte order.

        ``state`` is ``held`` or ``contended``, or empty for both.
        """
        return iterate(self.pages(self.blocking(), prefix, state))

    def events(
        self, types: Sequence[str] = (), locks: Sequence[str] = (), after: str = ""
    ) -> Iterator[Event]:
        """Iterates over what happens to the tenant's locks, without an end.

        A stream that is cut resumes where it was. An event of the type ``events.missed`` says that
        some are unknown: read :meth:`list` then. ``after`` is the id of the last event that you
        have dealt with, if you kept one.
        """
        stream = Stream(self, events_path(types, locks), after)
        return iterate(stream.events(self.blocking()))

    def stale_write(self, name: str, fence_presented: int, fence_known: int, resource: str) -> None:
        """Reports a write that a resource rejected, to operators."""
        run(self.report(self.blocking(), name, fence_presented, fence_known, resource))

    def close(self) -> None:
        """Ends all locks that the client still holds; it does not release them.

        It waits up to 2 s for calls that were cancelled to leave their queues.
        """
        run(self.shut(self.blocking()))

    def __enter__(self) -> Fencepost:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class AsyncFencepost(Base):
    """:class:`Fencepost` for asyncio. It is used in one event loop.

    ::

        async with AsyncFencepost(url, token) as client:
            async with client.lock("orders:42", ttl=30, wait=60) as held:
                await db.execute("UPDATE … WHERE id = $1 AND fence <= $2", id, held.fence)
    """

    _loop: Optional[asyncio.AbstractEventLoop] = None

    def awaiting(self) -> AsyncIO:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("fencepost: this client is used in another event loop")
        return AsyncIO(self.wire)

    def lock(self, name: str, **options: Unpack[Options]) -> Acquiring:
        """Acquires a lock and waits for it: ``async with client.lock(name) as held``.

        A cancel leaves the queue in the background. If that reaches no server, the entry expires
        with its TTL. ``held = await client.lock(name)`` does not cancel the task on a loss.
        """
        return self._acquire(target_of(name), dict(options))

    def try_lock(self, name: str, **options: Unpack[TryOptions]) -> Acquiring:
        """Acquires a lock if it is free now, or raises :class:`LockHeld`."""
        return self._acquire(target_of(name), {**options, "wait": 0.0})

    def lock_set(
        self, claims: Iterable[Union[Claim, str]], **options: Unpack[Options]
    ) -> Acquiring:
        """Acquires all locks at once, or none. The order of claims does not matter."""
        return self._acquire(set_of(claims), dict(options))

    def try_lock_set(
        self, claims: Iterable[Union[Claim, str]], **options: Unpack[TryOptions]
    ) -> Acquiring:
        """Acquires all locks if they are free now, or raises :class:`LockHeld`."""
        return self._acquire(set_of(claims), {**options, "wait": 0.0})

    def _acquire(self, target: Target, options: Dict[str, Any]) -> Acquiring:
        async def begin() -> AsyncHeld:
            acquisition = self.acquisition(target, options)
            grant = await acquisition.run_or_leave(self.awaiting())
            return self._hold(acquisition, grant)

        return Acquiring(begin)

    def _hold(self, acquisition: Acquisition, grant: Tuple[Entry, Reading]) -> AsyncHeld:
        held = AsyncHeld(self, acquisition.target, grant[0], acquisition.settings, grant[1])
        held.start()
        return held

    async def async_acquire(
        self, name: str, callback_url: Optional[str] = None, **options: Unpack[Options]
    ) -> AsyncPending:
        """Queues for a lock and returns at once, see :meth:`Fencepost.async_acquire`."""
        acquisition = self.queued(name, callback_url, dict(options))
        await self.enqueue(acquisition, self.awaiting())
        return AsyncPending(acquisition)

    async def wait_for(self, acquisition: Acquisition) -> AsyncHeld:
        return self._hold(acquisition, await acquisition.run(self.awaiting()))

    def claim(self, event: Event, **options: Unpack[TryOptions]) -> Acquiring:
        """Takes the grant that a callback reported, see :meth:`Fencepost.claim`."""

        async def begin() -> AsyncHeld:
            return await self.wait_for(self.claimed(event, dict(options)))

        return Acquiring(begin)

    async def lead(
        self, name: str, work: Callable[[AsyncHeld], Awaitable[T]], **options: Unpack[Options]
    ) -> T:
        """Campaigns for a lock and runs ``work`` while this process is the leader.

        The term is ``held.fence``. When the lock is lost, the task of ``work`` is cancelled; then
        ``lead`` campaigns again. If ``work`` ends while the lock is held, ``lead`` resigns and
        returns its result. A refusal such as ``forbidden`` ends the campaign.
        """
        pauses = 0
        while True:
            held: Optional[AsyncHeld] = None
            try:
                async with self.lock(name, **options) as held:
                    pauses = 0
                    return await work(held)
            except FencepostError as error:
                if not _passes(error) and (held is None or not held.is_lost):
                    raise
            except Exception:
                if held is None or not held.is_lost:
                    raise
            await asyncio.sleep(Limit(lambda: 0.0).pause(0.0, pauses))
            pauses += 1

    async def look(self, name: str) -> Lock:
        """Returns a lock with its holders and waiters."""
        return await self.look_at(self.awaiting(), name)

    def list(self, prefix: str = "", state: str = "") -> AsyncIterator[LockSummary]:
        """Iterates over the locks in use, see :meth:`Fencepost.list`."""
        return self.pages(self.awaiting(), prefix, state)

    def events(
        self, types: Sequence[str] = (), locks: Sequence[str] = (), after: str = ""
    ) -> AsyncIterator[Event]:
        """Iterates over what happens to the tenant's locks, see :meth:`Fencepost.events`."""
        return Stream(self, events_path(types, locks), after).events(self.awaiting())

    async def stale_write(
        self, name: str, fence_presented: int, fence_known: int, resource: str
    ) -> None:
        """Reports a write that a resource rejected, to operators."""
        await self.report(self.awaiting(), name, fence_presented, fence_known, resource)

    async def close(self) -> None:
        """Ends all locks that the client still holds, see :meth:`Fencepost.close`."""
        await self.shut(self.awaiting())
        await self.wire.close_async()

    async def __aenter__(self) -> AsyncFencepost:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()
