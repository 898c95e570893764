"""Locks of Fencepost for Celery: one beat at a time, and tasks that do not overlap.

Both use the client that the application has: ``app.fencepost = Fencepost(url, token)``.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import os
import signal
import socket
import threading
from contextvars import ContextVar
from typing import Any, Dict, Iterator, Optional, Tuple

from billiard.pool import SIG_SOFT_TIMEOUT, soft_timeout_sighandler
from celery import Task
from celery.beat import PersistentScheduler, ScheduleEntry
from celery.exceptions import Ignore
from celery.utils.log import get_logger
from fencepost import FencepostError, Held, LockHeld, WaitTimeout

logger = get_logger(__name__)

#: The lock of the task that runs: its ``fence``, for each write, and ``check()``.
held: ContextVar[Optional[Held]] = ContextVar("fencepost_celery.held", default=None)

_PAUSE = 5.0  # seconds until a campaign that failed is repeated


def _who(**fields: str) -> Dict[str, str]:
    return {"host": socket.gethostname(), "pid": str(os.getpid()), **fields}


class Leading:
    """Mixed into a scheduler of beat: it sends tasks only while it holds a lock.

    It sets up its schedule when it has acquired the lock, as a beat does that starts.
    """

    lock_name = "celery:beat"
    lock_ttl = 30.0  #: seconds for which no task is sent after a beat died

    def __init__(self, *args: Any, lazy: bool = False, **kwargs: Any) -> None:
        self._term: Optional[Held] = None
        super().__init__(*args, lazy=True, **kwargs)
        if not lazy:
            atexit.register(self._leave)  # a signal's handler must not use the client

    def _leave(self) -> None:
        with contextlib.suppress(FencepostError):  # the TTL is the limit
            if self._term is not None:
                self._term.release()
        self.app.fencepost.close()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if not self._leads():
            return self._campaign()
        return super().tick(*args, **kwargs)

    def _leads(self) -> bool:
        if self._term is None:
            return False
        try:
            self._term.check()
        except FencepostError:  # the client logs it
            self.close()
            self._term = None
        return self._term is not None

    def _campaign(self) -> float:
        """Waits for the lock until beat has to show that it is alive."""
        options = {"ttl": self.lock_ttl, "wait": self.max_interval, "metadata": _who()}
        try:
            self._term = self.app.fencepost.lock(self.lock_name, **options)
        except WaitTimeout:
            return 0
        except FencepostError as error:
            logger.error("beat: cannot acquire %s, trying again: %s", self.lock_name, error)
            return _PAUSE
        logger.info("beat: leads with the fence %d", self._term.fence)
        self._heap = None
        self.setup_schedule()
        return 0

    def apply_async(self, entry: ScheduleEntry, *args: Any, **kwargs: Any) -> Any:
        """Sends the fence in the header ``fencepost_fence``."""
        self._term.check()
        headers = {**entry.options.get("headers", {}), "fencepost_fence": self._term.fence}
        entry = copy.copy(entry)
        entry.options = {**entry.options, "headers": headers}
        return super().apply_async(entry, *args, **kwargs)

    def should_sync(self) -> bool:
        return self._term is not None and super().should_sync()

    def close(self) -> None:
        if self._term is not None:
            super().close()


class Scheduler(Leading, PersistentScheduler):
    """The scheduler of ``celery beat -S fencepost_celery:Scheduler``."""


class Single(Task):
    """The base of a task that does not overlap with itself.

    ``@app.task(base=Single, lock_wait=60)``
    """

    abstract = True
    lock_ttl = 30.0  #: seconds for which a dead worker blocks the task
    lock_wait = 0.0  #: seconds to wait for a run that has not ended; then this one is left out

    def lock_name(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> str:
        """Runs with the same name do not overlap; override it to tell arguments apart."""
        return f"celery:{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name, who = self.lock_name(args, kwargs), _who(task=str(self.request.id))
        options = {"ttl": self.lock_ttl, "wait": self.lock_wait, "metadata": who}
        try:
            grant = self.app.fencepost.lock(name, **options)
        except (LockHeld, WaitTimeout) as error:
            logger.info("%s is left out: %s", self.name, error)
            raise Ignore() from None
        except FencepostError as error:
            raise self.retry(exc=error) from error
        mark = held.set(grant)
        try:
            with grant, _stopped_when_lost(grant):
                return super().__call__(*args, **kwargs)
        finally:
            held.reset(mark)


@contextlib.contextmanager
def _stopped_when_lost(grant: Held) -> Iterator[None]:
    """Raises ``SoftTimeLimitExceeded`` in the task when its lock is lost.

    Only a process of the prefork pool can be interrupted so; elsewhere the task has to check.
    """
    main = threading.main_thread()
    handler = SIG_SOFT_TIMEOUT and signal.getsignal(SIG_SOFT_TIMEOUT)
    if handler is not soft_timeout_sighandler or threading.current_thread() is not main:
        yield
        return
    over, mutex = threading.Event(), threading.Lock()

    def watch() -> None:
        while not over.wait(grant.margin / 4):
            with contextlib.suppress(FencepostError):
                grant.check()
                continue
            with mutex:
                if not over.is_set():
                    signal.pthread_kill(main.ident, SIG_SOFT_TIMEOUT)
            return

    threading.Thread(target=watch, name="fencepost-celery", daemon=True).start()
    try:
        yield
    finally:
        with mutex:  # no signal comes after the task
            over.set()
