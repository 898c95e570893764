"""The client for threads."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    Optional,
    Sequence,
    Type,
    TypeVar,
    Union,
)

from ._acquire import Acquisition
from ._base import Base, passes
from ._errors import FencepostError, LockLost
from ._events import Event, Stream, events_path
from ._io import iterate, run
from ._lease import Lease
from ._look import Lock, LockSummary
from ._options import Claim, Options, Target, TryOptions, set_of, target_of
from ._repeat import backoff

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
        with self.acquisition(target, options) as acquisition:
            return self._claim(acquisition)

    def _claim(self, acquisition: Acquisition) -> Held:
        entry, since = run(acquisition.run(self.blocking()))
        held = Held(self, acquisition.target, entry, acquisition.settings, since)
        held.start()
        return held

    def async_acquire(
        self, name: str, callback_url: Optional[str] = None, **options: Unpack[Options]
    ) -> Pending:
        """Queues for a lock and returns at once; the lock may also be granted at once.

        With ``callback_url`` the servers report the grant there, or the end of the entry, signed
        with the tenant's callback secret. ``ttl`` has to be at least 15.
        """
        acquisition = self.queued(name, callback_url, dict(options))
        run(self.enqueue(acquisition, self.blocking()))
        return Pending(self, acquisition)

    def claim(self, event: Event, **options: Unpack[TryOptions]) -> Held:
        """Takes the grant that a callback reported, see :func:`verify_webhook`.

        It raises :class:`LockLost` if the lock has passed on meanwhile. A callback may come twice:
        pass over an event whose id you have seen, two claims would both count as the holder.
        """
        return self._claim(self.claimed(event, dict(options)))

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
            self.system.sleep(backoff(pauses))
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
