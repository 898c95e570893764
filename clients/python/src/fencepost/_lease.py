"""Locks that are held: they are renewed in the background until they are released or lost."""

from __future__ import annotations

import contextvars
import functools
import math
import os
import random
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Tuple

from ._acquire import Entry, release, renewal, send_for_entry
from ._errors import FencepostError, LockLost, LockReleased, again, caused, lost, lost_of
from ._io import IO, BlockingIO, run
from ._options import Settings, Target, release_requested
from ._repeat import Again, Attempt, Limit, repeat
from ._system import Reading, Timer, log

if TYPE_CHECKING:
    from ._base import Base


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
        self._target = target.kept(entry.fences)
        self._entry = entry
        self._settings = settings
        self._ttl = entry.ttl  # of the last answer
        self._since = since  # when the last successful request was sent
        self._granted = client.read().monotonic
        self._rests = False  # the work is over, and the lock is kept for its least time
        self._pid = os.getpid()
        self._context = contextvars.copy_context()  # for the caller's trace
        self._mutex = threading.Lock()
        self._error: Optional[FencepostError] = None  # why it is not held any more
        self._due = 0.0  # when to renew, in seconds after since
        self._timer: Optional[Timer] = None
        self._renewing: Optional[BlockingIO] = None
        self._failure: Optional[FencepostError] = None  # of the renewal under way
        self._asked: Tuple[Any, Any] = (None, None)  # the request for release reported last

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} fence {self.fence}>"

    @property
    def token(self) -> str:
        """The secret of the lock, for ``adopt`` in a process that takes it over.

        This process then closes its client, or ends, without a release.
        """
        return self._entry.token

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
        """The fence of each lock of a set; ``lock_any`` gives the granted ones."""
        return self._entry.fences

    @property
    def is_lost(self) -> bool:
        return isinstance(self._error, LockLost)

    @property
    def margin(self) -> float:
        """Seconds from the deadline to the end of the lease."""
        return self._settings.margin_of(self._ttl)

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
        if self._rests:
            raise _released(self.name)
        self._overdue()
        if self._error is not None:
            raise again(self._error)

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
        third = self._ttl / 3
        step, since = third / 20, self._since.monotonic
        due = since + third * random.uniform(0.9, 1.05)
        self._due = math.ceil(due / step) * step - since

    def _until_deadline(self, now: Reading) -> float:
        return self._ttl - self.margin - now.since(self._since)

    def _overdue(self) -> bool:
        """Ends the lock if its deadline has come."""
        if self._error is None and self.left() <= 0:
            passed = self._client.read().since(self._since)
            detail = f"no renewal has succeeded for {passed:.1f} s"
            if self._failure is not None:
                detail += f", last error: {self._failure}"
            self.end(caused(lost(self.name, "deadline", detail), self._failure))
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
        if isinstance(why, LockLost) and not self._rests:
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
            return sent, await send_for_entry(a, renewal(self._target, self._entry, self._ttl))
        except LockLost:
            raise
        except (Again, FencepostError) as error:
            failed = error if isinstance(error, Again) else Again(error)
        self._failure = failed.error
        raise failed

    def _renewed(self, sent: Reading, entry: Entry) -> None:
        """Moves the deadline, unless it has come while the answer was on its way."""
        if self._overdue():
            return
        asked = entry.release_requested or {}
        key = (asked.get("since"), asked.get("by"))
        with self._mutex:
            self._since, self._ttl = sent, entry.ttl
            self._renewing = self._failure = None
            self._plan()
            report = bool(asked) and key != self._asked
            self._asked = key
        self._look()
        call = self._settings.on_release_requested
        if report and call is not None and self._error is None and not self._rests:
            self._on_asked(functools.partial(call, release_requested(asked)))

    def _keeps(self) -> bool:
        """Begins the rest of the least time of a lock, and reports whether there is one.

        The lock is renewed until it is over, and released then.
        """
        left = self._granted + self._settings.at_least - self._client.read().monotonic
        if left > 0 and not self._rests and os.getpid() == self._pid and not self._overdue():
            self._rests = True
            release = functools.partial(self._context.run, self._release_later)
            self._client.system.call_later(
                left, functools.partial(self._client.spawn, release, leaves=True)
            )
        return self._rests

    def _release_later(self) -> None:
        with suppress(FencepostError):  # logged, or the lock was lost meanwhile
            if self._releases():
                run(self._give_back(BlockingIO(self._client.wire)))

    def _releases(self) -> bool:
        """Ends the lock for its release, or raises that it is lost.

        It reports whether :meth:`_give_back` has to follow, for which close waits.
        """
        if os.getpid() != self._pid:
            raise lost(self.name, "forked")
        self._overdue()
        self._client.begin()
        if self.end(_released(self.name)):
            return True
        self._client.end()
        if self.is_lost:
            self.check()
        return False

    async def _give_back(self, io: IO) -> None:
        limit = Limit(self.left, held=True)
        try:
            await repeat(self._client, io, limit, self._attempt_release)
        except FencepostError as error:
            if error.code == "lock_lost":
                return
            log.warning("a lock could not be released and expires: %s: %s", self.name, error)
            raise
        finally:
            self._client.end()

    async def _attempt_release(self, a: Attempt) -> None:
        await a.send(release(self._target, self._entry))


def _released(name: str) -> LockReleased:
    return LockReleased("released", f"{name} is released")
