"""The client for threads."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Type, TypeVar

from ._acquire import Acquisition
from ._base import passes
from ._errors import FencepostError, LockLost
from ._events import Event, Stream, events_path
from ._io import iterate, run
from ._lease import Lease
from ._locks import Locks
from ._look import Lock, LockSummary
from ._options import Mode, OnReleaseRequested, Settings, Target, target_of
from ._repeat import backoff

T = TypeVar("T")


class Held(Lease):
    """A lock, or a set of locks, that this process holds. Any thread may use it.

    Leaving the ``with`` block releases it. After :func:`os.fork` the child does not hold it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        #: set when the lock is lost, one margin before the lease ends
        self.lost = threading.Event()

    def _on_lost(self) -> None:
        self.lost.set()

    def release(self) -> None:
        """Gives the lock back. It tries until the deadline of the lock and no longer.

        If it fails, it logs and raises why, and the lock expires with its TTL. If the lock was
        lost before, it sends nothing and raises :class:`LockLost`. With ``at_least`` it returns at
        once, and the lock is released in the background when that is over.
        """
        if not self._keeps() and self._releases():
            run(self._give_back(self._client.blocking()))

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


class Pending:
    """An entry that the servers keep in its queue without a connection, for as long as its wait.

    Its grant has to be claimed within a TTL: by :meth:`wait`, or by :meth:`Fencepost.claim` where
    a callback reports it. One thread at a time may use it.
    """

    def __init__(self, client: Fencepost, acquisition: Acquisition) -> None:
        self._client = client
        self._acquisition = acquisition

    @property
    def id(self) -> str:
        """The entry, as callbacks and events have it."""
        return self._acquisition.entry.id

    def wait(self) -> Held:
        """Waits for the grant and claims it. An exception leaves the entry in its queue."""
        return self._client._claim(self._acquisition)

    def leave(self) -> None:
        """Leaves the queue, or releases a grant that was not claimed. It tries for one TTL."""
        run(self._acquisition.leave_now(self._client.blocking()))


class Fencepost(Locks[Held, Pending]):
    """Acquires locks. Any thread may use it.

    ::

        with Fencepost(url, token).lock("orders:42", ttl=30, wait=60) as held:
            db.execute("UPDATE … WHERE id = %s AND fence <= %s", (id, held.fence))
    """

    def _acquire(self, target: Target, options: Settings) -> Held:
        with self.acquisition(target, options) as acquisition:
            return self._claim(acquisition)

    def _take(self, begin: Callable[[], Acquisition]) -> Held:
        return self._claim(begin())

    def _claim(self, acquisition: Acquisition) -> Held:
        entry, since = run(acquisition.run(self.blocking()))
        held = Held(self, acquisition.target, entry, acquisition.settings, since)
        held.start()
        return held

    def _queue(self, begin: Callable[[], Acquisition]) -> Pending:
        acquisition = begin()
        run(self.enqueue(acquisition, self.blocking()))
        return Pending(self, acquisition)

    def lead(
        self,
        name: str,
        work: Callable[[Held], T],
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
        """Campaigns for a lock and calls ``work`` while this process is the leader.

        The term is ``held.fence``; ``held.check()`` raises when it is over. When the lock is lost,
        ``work`` has to return or raise; then ``lead`` campaigns again. If it ends while the lock is
        held, ``lead`` resigns and returns its result. Options: :meth:`lock`.

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
            try:
                held = self._acquire(target_of(name), options)
            except FencepostError as error:
                if not passes(error):
                    raise
            else:
                pauses = 0
                try:
                    with held:
                        return work(held)
                except Exception:
                    if not held.is_lost:
                        raise
            run(self.pause(self.blocking(), backoff(pauses)))
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
        """Ends the locks that the client still holds, without a release, and the calls under way.

        These raise :class:`Cancelled`. It waits up to 2 s for them to leave their queues, and for
        releases under way.
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
