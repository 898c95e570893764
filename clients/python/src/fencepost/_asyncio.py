"""The client for asyncio."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from types import TracebackType
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Mapping,
    Optional,
    Sequence,
    Set,
    Type,
    TypeVar,
)

from ._acquire import Acquisition
from ._base import passes
from ._errors import FencepostError, LockLost
from ._events import Event, Stream, events_path
from ._io import AsyncIO
from ._lease import Lease
from ._locks import Locks
from ._look import Lock, LockSummary
from ._options import Mode, OnReleaseRequested, Settings, Target, target_of
from ._repeat import backoff

T = TypeVar("T")


class AsyncHeld(Lease):
    """A lock, or a set of locks, that this process holds, for asyncio.

    In ``async with`` the task is cancelled when the lock is lost, and the block raises
    :class:`LockLost`. Leaving the block releases the lock.
    """

    _client: AsyncFencepost

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._loop = asyncio.get_running_loop()
        #: set when the lock is lost, one margin before the lease ends
        self.lost = asyncio.Event()
        self._task: Optional[asyncio.Task[Any]] = None  # of the block
        self._cancels = 0  # of the task, when it entered the block
        self._stopped = False  # the task was cancelled because the lock is lost

    def _on_lost(self) -> None:
        self._call(self._stop)

    def _on_asked(self, call: Callable[[], object]) -> None:
        self._call(call)

    def _call(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and its tasks are gone
            self._loop.call_soon_threadsafe(call)

    def _stop(self) -> None:
        self.lost.set()
        if self._task is not None:
            self._stopped = True
            self._task.cancel(_MARK)

    async def release(self) -> None:
        """Gives the lock back, as :meth:`Held.release` does, also if the task is cancelled."""
        io = self._client.awaiting()
        if not self._keeps() and self._releases():
            await finish(self._give_back(io))

    async def __aenter__(self) -> AsyncHeld:
        self.check()
        self._task = asyncio.current_task()
        self._cancels = _cancels(self._task)
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        task, self._task = self._task, None
        if self._stopped and task is not None and _absorb(task, self._cancels, error):
            error = None
        try:
            await self.release()
        except LockLost as gone:
            if error is None:
                raise gone from gone.__cause__
        except FencepostError:
            pass  # logged: the work is done


_MARK = "the lock is lost"


def _cancels(task: Optional[asyncio.Task[Any]]) -> int:
    if sys.version_info >= (3, 11) and task is not None:
        return task.cancelling()
    return 0


def _absorb(task: asyncio.Task[Any], before: int, error: Optional[BaseException]) -> bool:
    """Reports whether the error is the cancel of the lost lock, and of nothing else.

    A cancel by another part of the program remains a cancel.
    """
    if sys.version_info >= (3, 11):
        return task.uncancel() <= before and isinstance(error, asyncio.CancelledError)
    return isinstance(error, asyncio.CancelledError) and _MARK in error.args


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Waits for work that goes on if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.shield(task)


_unfinished: Set[asyncio.Future[Any]] = set()  # the event loop keeps weak references alone


class Acquiring:
    """An acquire that is awaited, or entered with ``async with``."""

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, AsyncHeld]]) -> None:
        self._begin = begin
        self._held: Optional[AsyncHeld] = None

    def __await__(self) -> Generator[Any, None, AsyncHeld]:
        return self._begin().__await__()

    async def __aenter__(self) -> AsyncHeld:
        self._held = await self
        return await self._held.__aenter__()

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        assert self._held is not None
        await self._held.__aexit__(kind, error, trace)


class AsyncPending:
    """An entry in a queue without a connection, see :class:`Pending`."""

    def __init__(self, client: AsyncFencepost, acquisition: Acquisition) -> None:
        self._client = client
        self._acquisition = acquisition

    @property
    def id(self) -> str:
        """The entry, as callbacks and events have it."""
        return self._acquisition.entry.id

    def wait(self) -> Acquiring:
        """Waits for the grant and claims it. A cancel leaves the entry in its queue."""
        return Acquiring(lambda: self._client._claim(self._acquisition))

    async def leave(self) -> None:
        """Leaves the queue, or releases a grant that was not claimed. It tries for one TTL."""
        await self._acquisition.leave_now(self._client.awaiting())


class AsyncFencepost(Locks[Acquiring, Coroutine[Any, Any, AsyncPending]]):
    """:class:`Fencepost` for asyncio. It is used in one event loop.

    ::

        async with AsyncFencepost(url, token) as client:
            async with client.lock("orders:42", ttl=30, wait=60) as held:
                await db.execute("UPDATE … WHERE id = %s AND fence <= %s", (id, held.fence))
    """

    _loop: Optional[asyncio.AbstractEventLoop] = None

    def awaiting(self) -> AsyncIO:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError("fencepost: this client is used in another event loop")
        return AsyncIO(self.wire)

    def _acquire(self, target: Target, options: Settings) -> Acquiring:
        async def begin() -> AsyncHeld:
            with self.acquisition(target, options) as acquisition:
                return await self._claim(acquisition)

        return Acquiring(begin)

    def _take(self, begin: Callable[[], Acquisition]) -> Acquiring:
        return Acquiring(lambda: self._claim(begin()))

    async def _claim(self, acquisition: Acquisition) -> AsyncHeld:
        entry, since = await acquisition.run(self.awaiting())
        held = AsyncHeld(self, acquisition.target, entry, acquisition.settings, since)
        held.start()
        return held

    async def _queue(self, begin: Callable[[], Acquisition]) -> AsyncPending:
        acquisition = begin()
        await self.enqueue(acquisition, self.awaiting())
        return AsyncPending(self, acquisition)

    async def lead(
        self,
        name: str,
        work: Callable[[AsyncHeld], Awaitable[T]],
        *,
        ttl: float = 30.0,
        wait: float = 60.0,
        mode: Mode = "exclusive",
        limit: Optional[int] = None,
        permits: Optional[int] = None,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        request_release: Optional[float] = None,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
    ) -> T:
        """Campaigns for a lock and runs ``work`` while this process is the leader.

        The term is ``held.fence``. When the lock is lost, the task of ``work`` is cancelled; then
        ``lead`` campaigns again. If ``work`` ends while the lock is held, ``lead`` resigns and
        returns its result. Options: :meth:`lock`.

        :raises FencepostError: a refusal such as ``forbidden``, which ends the campaign
        """
        options = Settings(
            ttl,
            wait,
            mode,
            limit,
            permits,
            holder,
            metadata,
            request_release,
            margin,
            on_release_requested,
        )
        pauses = 0
        while True:
            held: Optional[AsyncHeld] = None
            try:
                async with self._acquire(target_of(name), options) as held:
                    pauses = 0
                    return await work(held)
            except FencepostError as error:
                if not passes(error) and (held is None or not held.is_lost):
                    raise
            except Exception:
                if held is None or not held.is_lost:
                    raise
            await self.pause(self.awaiting(), backoff(pauses))
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
        """Ends held locks and calls under way, see :meth:`Fencepost.close`."""
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
