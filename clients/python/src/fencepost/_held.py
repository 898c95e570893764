"""Locks that are held: they are renewed in the background until they are released or lost."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import functools
import math
import os
import random
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Generator, Mapping, Optional, Tuple, Type

from ._errors import FencepostError, LockLost, LockReleased, lost, lost_of
from ._http import IO, BlockingIO, run
from ._options import ReleaseRequested, Settings, Target
from ._protocol import Acquisition, Again, Attempt, Entry, Limit, release, renewal, repeat
from ._system import Reading, Timer, log

if TYPE_CHECKING:
    from ._client import Base


class Lease:
    """What locks held by threads and by asyncio have in common.

    The lock counts as lost one margin before its lease can end: the lease counts from when the last
    successful request was sent. A process can stop between any check and a write, so the resource
    that is written has to compare the fence.
    """

    def __init__(
        self, client: Base, target: Target, entry: Entry, settings: Settings, since: Reading
    ) -> None:
        self._client = client
        self._target = target
        self._entry = entry
        self._settings = settings
        self.margin = settings.margin_of(entry.ttl)  #: seconds from the deadline to the lease's end
        self._since = since  # when the last successful request was sent
        self._pid = os.getpid()
        self._context = contextvars.copy_context()  # for the caller's trace
        self._mutex = threading.Lock()
        self._error: Optional[FencepostError] = None  # why it is not held any more
        self._due = 0.0  # when to renew, in seconds after since
        self._timer: Optional[Timer] = None
        self._renewing: Optional[BlockingIO] = None
        self._asked: Tuple[Any, Any] = (None, None)  # the request for release reported last

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} fence {self.fence}>"

    @property
    def id(self) -> str:
        """The entry, as lists and events have it."""
        return self._entry.id

    @property
    def name(self) -> str:
        """The lock; of a set all names, with commas in between."""
        return self._target.name

    @property
    def fence(self) -> int:
        """Grows from each grant of a lock to the next. All locks of a set have the same."""
        return next(iter(self._entry.fences.values()), 0)

    @property
    def fences(self) -> Mapping[str, int]:
        """The fence of each lock of a set."""
        return self._entry.fences

    @property
    def is_lost(self) -> bool:
        return isinstance(self._error, LockLost)

    def left(self) -> float:
        """Seconds until the deadline, at which the lock counts as lost; negative after it."""
        return self._until_deadline(self._client.read())

    def _renewable(self) -> float:
        return 0.0 if self._error else self.left()

    def check(self) -> None:
        """Raises :class:`LockLost`, or :class:`LockReleased`, unless the lock is held.

        It reads the clocks, so it also knows what the work is about to learn after the process or
        the machine was stopped. It asks no server.
        """
        if os.getpid() != self._pid:
            raise lost(self.name, "forked")
        self._overdue()
        if self._error is not None:
            raise copy.copy(self._error)

    def start(self) -> None:
        """Begins to renew. It raises if the deadline has come, or the client is closed."""
        self._plan()
        if not self._client.keep(self):
            self.end(lost(self.name, "closed"))
        self._look()
        self.check()

    def _plan(self) -> None:
        """Sets when to renew: at a third of the TTL, up to a tenth of that sooner or later.

        So many locks do not renew at once; some do, which costs a thread less than one by one.
        """
        third = self._entry.ttl / 3
        step, since = third / 20, self._since.monotonic
        due = since + third * random.uniform(0.9, 1.05)
        self._due = math.ceil(due / step) * step - since

    def _until_deadline(self, now: Reading) -> float:
        return self._entry.ttl - self.margin - now.since(self._since)

    def _overdue(self) -> bool:
        """Ends the lock if its deadline has come."""
        if self._error is None and self.left() <= 0:
            self.end(lost(self.name, "deadline"))
        return self._error is not None

    def _look(self) -> None:
        """Ends the lock, renews it, or sets the timer to when one of both is due."""
        if self._overdue():
            return
        now = self._client.read()
        due = False
        with self._mutex:
            if self._error is not None:
                return
            if self._timer is not None:
                self._timer.cancel()
            wait = self._until_deadline(now)
            if self._renewing is None:
                until = self._due - now.since(self._since)
                due = until <= 0
                wait = wait if due else min(wait, until)
            if due:
                self._renewing = BlockingIO(self._client.wire)
            self._timer = self._client.system.call_later(max(wait, 0.001), self._look)
        if due:
            self._client.spawn(functools.partial(self._context.run, self._renew))

    def end(self, why: FencepostError) -> bool:
        """Ends the lock for a reason. It reports false if it had ended before."""
        with self._mutex:
            if self._error is not None:
                return False
            self._error = why
            timer, self._timer = self._timer, None
            renewing = self._renewing
        if timer is not None:
            timer.cancel()
        if renewing is not None:
            renewing.abort()
        self._client.drop(self)
        if isinstance(why, LockLost):
            log.warning("a lock is lost: %s, fence %d", why, self.fence)
            self._on_lost()
        return True

    def _on_lost(self) -> None:
        raise NotImplementedError

    def _on_asked(self, call: Callable[[], object]) -> None:
        call()

    def _renew(self) -> None:
        """Renews until one request succeeds, or the deadline has come, which ends it."""
        io = self._renewing
        assert io is not None
        try:
            sent, entry = run(
                repeat(self._client, io, Limit(self._renewable, held=True), self._attempt)
            )
        except LockLost as gone:
            self.end(lost_of(self.name, gone))
        except FencepostError:
            pass  # the deadline is near: the timer ends it
        else:
            self._renewed(sent, entry)

    async def _attempt(self, a: Attempt) -> Tuple[Reading, Entry]:
        """Every failure but 410 is one to try again after: a bearer token may be replaced."""
        sent = self._client.read()
        try:
            return sent, await a.send_for_entry(renewal(self._target, self._entry))
        except LockLost:
            raise
        except FencepostError as error:
            raise Again(error) from None

    def _renewed(self, sent: Reading, entry: Entry) -> None:
        """Moves the deadline, unless it has come while the answer was on its way."""
        if self._overdue():
            return
        asked = entry.release_requested or {}
        key = (asked.get("since"), asked.get("by"))
        with self._mutex:
            self._since = sent
            self._renewing = None
            self._plan()
            report = bool(asked) and key != self._asked
            self._asked = key
        self._look()
        call = self._settings.on_release_requested
        if report and call is not None and self._error is None:
            self._on_asked(functools.partial(call, ReleaseRequested(**asked)))  # type: ignore[typeddict-item]

    async def _release(self, io: IO) -> None:
        """Gives the lock back, or raises that it is lost. A second call sends nothing."""
        if os.getpid() != self._pid:
            raise lost(self.name, "forked")
        self._overdue()
        if not self.end(LockReleased("released", f"{self.name} is released")):
            if self.is_lost:
                self.check()
            return
        limit = Limit(self.left, held=True)
        try:
            await repeat(self._client, io, limit, self._attempt_release)
        except FencepostError as error:
            if error.code == "lock_lost":
                return
            log.warning("a lock could not be released and expires: %s: %s", self.name, error)
            raise

    async def _attempt_release(self, a: Attempt) -> None:
        await a.send(release(self._target, self._entry))


class Held(Lease):
    """A lock, or a set of locks, that this process holds. Any thread may use it.

    Leaving the ``with`` block releases it. After :func:`os.fork` the child does not hold it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lost = (
            threading.Event()
        )  #: set when the lock is lost, one margin before the lease ends

    def _on_lost(self) -> None:
        self.lost.set()

    def release(self) -> None:
        """Gives the lock back. It tries until the deadline of the lock and no longer.

        If it fails, it logs and raises why, and the lock expires with its TTL. If the lock was
        lost before, it sends nothing and raises :class:`LockLost`.
        """
        run(self._release(self._client.blocking()))

    def __enter__(self) -> Held:
        self.check()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Raises :class:`LockLost` if the work ended without an error, and without the lock."""
        try:
            self.release()
        except LockLost:
            if error is None:
                raise
        except FencepostError:
            pass  # logged: the work is done


class AsyncHeld(Lease):
    """A lock, or a set of locks, that this process holds, for asyncio.

    In ``async with`` the task is cancelled when the lock is lost, and the block raises
    :class:`LockLost`. Leaving the block releases the lock.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._loop = asyncio.get_running_loop()
        self.lost = asyncio.Event()  #: set when the lock is lost, one margin before the lease ends
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
        await finish(self._release(self._client.awaiting()))

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
                raise gone from None
        except FencepostError:
            pass  # logged: the work is done


_MARK = "the lock is lost"


def _cancels(task: Optional[asyncio.Task[Any]]) -> int:
    return task.cancelling() if sys.version_info >= (3, 11) and task is not None else 0


def _absorb(task: asyncio.Task[Any], before: int, error: Optional[BaseException]) -> bool:
    """Reports whether the error is the cancel of the lost lock, and of nothing else.

    A cancel by another part of the program remains a cancel.
    """
    if sys.version_info >= (3, 11):
        return task.uncancel() <= before and isinstance(error, asyncio.CancelledError)
    return isinstance(error, asyncio.CancelledError) and _MARK in error.args


async def finish(work: Any) -> None:
    """Waits for work that goes on if the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.shield(task)


_unfinished: set[asyncio.Future[Any]] = set()


class Acquiring:
    """An acquire that is awaited, or entered with ``async with``."""

    def __init__(self, begin: Callable[[], Any]) -> None:
        self._begin = begin
        self._held: Optional[AsyncHeld] = None

    def __await__(self) -> Generator[Any, None, AsyncHeld]:
        return self._begin().__await__()  # type: ignore[no-any-return]

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


class PendingEntry:
    """What entries that wait without a connection have in common."""

    def __init__(self, acquisition: Acquisition) -> None:
        self._acquisition = acquisition

    @property
    def id(self) -> str:
        """The entry, as callbacks and events have it."""
        return self._acquisition.entry.id


class Pending(PendingEntry):
    """An entry that the servers keep in its queue without a connection, for as long as its wait.

    Its grant has to be claimed within a TTL: by :meth:`wait`, or by :meth:`Fencepost.claim` where
    a callback reports it. One thread at a time may use it.
    """

    def wait(self) -> Held:
        """Waits for the grant and claims it. An exception leaves the entry in its queue."""
        return self._acquisition.client.wait_for(self._acquisition)  # type: ignore[no-any-return]

    def leave(self) -> None:
        """Leaves the queue, or releases a grant that was not claimed. It tries for one TTL."""
        run(self._acquisition.leave_now(self._acquisition.client.blocking()))


class AsyncPending(PendingEntry):
    """:class:`Pending` for asyncio."""

    def wait(self) -> Acquiring:
        """Waits for the grant and claims it. A cancel leaves the entry in its queue."""
        client = self._acquisition.client
        return Acquiring(lambda: client.wait_for(self._acquisition))

    async def leave(self) -> None:
        """Leaves the queue, or releases a grant that was not claimed. It tries for one TTL."""
        await self._acquisition.leave_now(self._acquisition.client.awaiting())
