"""The calls that acquire locks, for both clients."""

from __future__ import annotations

from typing import Callable, Generic, Iterable, Mapping, Optional, TypeVar, Union

from ._acquire import Acquisition
from ._base import Base
from ._events import Event
from ._options import Claim, Mode, OnReleaseRequested, Settings, Target, set_of, target_of

H = TypeVar("H")  # what gives a held lock
P = TypeVar("P")  # what gives an entry in a queue


class Locks(Base, Generic[H, P]):
    """What :class:`Fencepost` returns, :class:`AsyncFencepost` awaits or enters."""

    def lock(
        self,
        name: str,
        *,
        ttl: float = 30.0,
        wait: float = 60.0,
        mode: Mode = "exclusive",
        limit: Optional[int] = None,
        permits: Optional[int] = None,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        request_release: Optional[float] = None,
        only_newest: bool = False,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
        at_least: float = 0.0,
    ) -> H:
        """Acquires a lock and waits for it. The client renews it until it is released.

        :param ttl: seconds of the lease: how long a dead holder blocks the lock; 2 at least
        :param wait: seconds to queue at most
        :param mode: ``exclusive``, ``shared``, or ``semaphore`` with a ``limit``
        :param limit: how many permits the semaphore has; each entry is judged by its own
        :param permits: how many of them this one takes; 1 by default
        :param only_newest: gives up the wait for a later one that has this option, too
        :param holder: names this worker; servers detect deadlocks among holders with a name
        :param metadata: texts that are shown with the lock
        :param request_release: asks the holder to finish within so many seconds
        :param margin: seconds before the end of the lease at which the work has to stop; by
            default a tenth of ``ttl``, 0.25 at least
        :param on_release_requested: called with a :class:`ReleaseRequested` while the lock is
            held, when a waiter asks the holder to finish
        :param at_least: seconds after the grant for which the lock is kept, and renewed, although
            the work has ended. Leaving the block returns at once. A client that is closed, or a
            process that exits, leaves the rest to the TTL: one of ``at_least`` covers that
        :raises WaitTimeout: the lock was not granted within ``wait``
        :raises Deadlock: to wait would close a cycle of holders that wait for each other
        :raises Superseded: a later call with ``only_newest`` took its place
        :raises LockClosed: an operator closed the lock
        :raises ModeMismatch: the lock is in use as a semaphore, or not as one
        :raises LockLost: the lease ended before the grant arrived, or an operator revoked it
        :raises InvalidRequest: an option is not valid
        :raises NoAnswer: no server answered within ``wait`` and the client's ``retry_for``
        :raises FencepostError: each of these, and all else; ``code`` says what

        An exception in the call, such as ``KeyboardInterrupt`` or a cancel, leaves the queue in
        the background. If that reaches no server, the entry expires with its TTL.
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
            at_least,
            only_newest,
        )
        return self._acquire(target_of(name), options)

    def try_lock(
        self,
        name: str,
        *,
        ttl: float = 30.0,
        mode: Mode = "exclusive",
        limit: Optional[int] = None,
        permits: Optional[int] = None,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
        at_least: float = 0.0,
    ) -> H:
        """Acquires a lock if it is free now. Options and errors: :meth:`lock`.

        :raises LockHeld: another holder has the lock
        """
        options = Settings(
            ttl,
            0.0,
            mode,
            limit,
            permits,
            holder,
            metadata,
            None,
            margin,
            on_release_requested,
            at_least,
        )
        return self._acquire(target_of(name), options)

    def lock_set(
        self,
        claims: Iterable[Union[Claim, str]],
        *,
        ttl: float = 30.0,
        wait: float = 60.0,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        request_release: Optional[float] = None,
        only_newest: bool = False,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
        at_least: float = 0.0,
    ) -> H:
        """Acquires all locks at once, or none. Options and errors: :meth:`lock`.

        :param claims: names, or :class:`Claim`; their order does not matter
        """
        options = Settings(
            ttl,
            wait,
            holder=holder,
            metadata=metadata,
            request_release=request_release,
            margin=margin,
            on_release_requested=on_release_requested,
            at_least=at_least,
            only_newest=only_newest,
        )
        return self._acquire(set_of(claims), options)

    def try_lock_set(
        self,
        claims: Iterable[Union[Claim, str]],
        *,
        ttl: float = 30.0,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
        at_least: float = 0.0,
    ) -> H:
        """Acquires all locks if they are free now. Options and errors: :meth:`lock_set`.

        :raises LockHeld: another holder has one of them
        """
        options = Settings(
            ttl,
            0.0,
            holder=holder,
            metadata=metadata,
            margin=margin,
            on_release_requested=on_release_requested,
            at_least=at_least,
        )
        return self._acquire(set_of(claims), options)

    def lock_any(
        self,
        claims: Iterable[Union[Claim, str]],
        k: int = 1,
        *,
        ttl: float = 30.0,
        wait: float = 60.0,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        request_release: Optional[float] = None,
        only_newest: bool = False,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
        at_least: float = 0.0,
    ) -> H:
        """Acquires any ``k`` of the locks: those that are free first. ``held.fences`` has them.

        It waits in all their queues. Options and errors: :meth:`lock`.

        :param claims: names, or :class:`Claim`; the first free ones are taken
        """
        options = Settings(
            ttl,
            wait,
            holder=holder,
            metadata=metadata,
            request_release=request_release,
            margin=margin,
            on_release_requested=on_release_requested,
            at_least=at_least,
            only_newest=only_newest,
        )
        return self._acquire(set_of(claims, k), options)

    def try_lock_any(
        self,
        claims: Iterable[Union[Claim, str]],
        k: int = 1,
        *,
        ttl: float = 30.0,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
        at_least: float = 0.0,
    ) -> H:
        """Acquires any ``k`` of the locks that are free now. Options and errors: :meth:`lock_any`.

        :raises LockHeld: fewer are free
        """
        options = Settings(
            ttl,
            0.0,
            holder=holder,
            metadata=metadata,
            margin=margin,
            on_release_requested=on_release_requested,
            at_least=at_least,
        )
        return self._acquire(set_of(claims, k), options)

    def async_acquire(
        self,
        name: str,
        callback_url: Optional[str] = None,
        *,
        ttl: float = 30.0,
        wait: float = 60.0,
        mode: Mode = "exclusive",
        limit: Optional[int] = None,
        permits: Optional[int] = None,
        holder: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        request_release: Optional[float] = None,
        only_newest: bool = False,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
    ) -> P:
        """Queues for a lock and returns at once; the lock may also be granted at once.

        Options and errors: :meth:`lock`. Here ``ttl`` is 15 at least.

        :param callback_url: servers report the grant there, or the end of the entry, signed with
            the tenant's callback secret
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
            only_newest=only_newest,
        )
        return self._queue(lambda: self.queued(name, callback_url, options))

    def claim(
        self,
        event: Event,
        *,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
    ) -> H:
        """Takes the grant that a callback reported, see :func:`verify_webhook`.

        A callback may come twice: pass over an event whose id you have seen, two claims would both
        count as the holder. Options: :meth:`lock`.

        :raises LockLost: the lock has passed on meanwhile
        """
        options = Settings(margin=margin, on_release_requested=on_release_requested)
        return self._take(lambda: self.claimed(event, options))

    def adopt(
        self,
        name: str,
        token: str,
        *,
        margin: Optional[float] = None,
        on_release_requested: Optional[OnReleaseRequested] = None,
    ) -> H:
        """Takes over the lock of another process, and renews it from then on.

        The other process hands over ``held.token``, then closes its client or ends, without a
        release. A set cannot be adopted. Options: :meth:`lock`.

        :raises LockLost: the lock has passed on meanwhile, or is not granted
        :raises Forbidden: the token is of another lock
        """
        options = Settings(wait=0.0, margin=margin, on_release_requested=on_release_requested)
        return self._take(lambda: self.adopted(name, token, options))

    def _acquire(self, target: Target, options: Settings) -> H:
        raise NotImplementedError

    def _take(self, begin: Callable[[], Acquisition]) -> H:
        """Takes a grant whose token is known."""
        raise NotImplementedError

    def _queue(self, begin: Callable[[], Acquisition]) -> P:
        raise NotImplementedError
