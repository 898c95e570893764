"""What the client needs of the machine: clocks, sleep, timers and background threads.

Renewals of all clients run in daemon threads, also those of asyncio: an event loop that is blocked
does not lose its locks, and the interpreter exits with locks held.
"""

from __future__ import annotations

import heapq
import logging
import os
import queue
import threading
import time
from contextlib import suppress
from typing import Callable, List, NamedTuple, Optional, Protocol

log = logging.getLogger("fencepost")

_MAX_WORKERS = 100  # renewals that hang at once; the others wait for one of them
_WORKER_IDLE = 10.0  # seconds after which a thread without work ends
_GROW_AFTER = 0.05  # seconds for which a job waits for a worker before there is another one


class Reading(NamedTuple):
    """What the clocks show at an instant, in seconds, each since an origin of its own."""

    monotonic: float  # stands still while the machine is suspended, on Linux
    boot: Optional[float]  # like monotonic, and passes while suspended
    wall: float  # may be set, forward and back

    def since(self, earlier: Reading) -> float:
        """How much time passed since an earlier reading.

        Of two clocks it believes the one by which more time passed: a lock that ends too early
        costs a retry, one that ends too late costs data. Without a boot clock the wall clock
        shows a suspension.
        """
        if self.boot is None or earlier.boot is None:
            other = self.wall - earlier.wall
        else:
            other = self.boot - earlier.boot
        return max(self.monotonic - earlier.monotonic, other)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Event(Protocol):
    def is_set(self) -> bool: ...
    def set(self) -> None: ...
    def wait(self, timeout: Optional[float] = None) -> bool: ...


class System:
    """The seam to clocks and threads, which the tests replace."""

    _boot = getattr(time, "CLOCK_BOOTTIME", None)

    def read(self) -> Reading:
        boot = None if self._boot is None else time.clock_gettime(self._boot)
        return Reading(time.monotonic(), boot, time.time())

    def event(self) -> Event:
        return threading.Event()

    def ready(self) -> None:
        """Starts the thread of the timers. It raises RuntimeError if the machine refuses it."""
        _background.begin()

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        return _background.call_later(delay, call)

    def spawn(self, call: Callable[[], None], leaves: bool = False) -> None:
        """Runs a call in a worker. Those that leave queues never take one from renewals."""
        (_background.leaves if leaves else _background.renewals).spawn(call)


class _Timer:
    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call: Optional[Callable[[], None]] = call

    def __lt__(self, other: _Timer) -> bool:
        return self.when < other.when

    def cancel(self) -> None:
        self.call = None


class _Background:
    """A thread for timers, and others, as many as are needed, for what may block."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._timers: List[_Timer] = []  # a heap
        self._started = False
        self.renewals = _Workers(self)
        self.leaves = _Workers(self)

    def begin(self) -> None:
        with self._changed:
            if not self._started:
                self._started = True
                try:
                    _start("fencepost", self._run)
                except Exception:
                    self._started = False
                    raise

    def call_later(self, delay: float, call: Callable[[], None]) -> _Timer:
        self.begin()
        timer = _Timer(time.monotonic() + delay, call)
        with self._changed:
            heapq.heappush(self._timers, timer)
            if self._timers[0] is timer:
                self._changed.notify()
        return timer

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._timers:
                    self._changed.wait()
                left = self._timers[0].when - time.monotonic()
                if left > 0:
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                    continue
                timer = heapq.heappop(self._timers)
            call, timer.call = timer.call, None
            if call is not None:
                _guard(call)


class _Workers:
    """Threads for calls that may block."""

    def __init__(self, background: _Background) -> None:
        self._background = background
        self._mutex = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._workers = self._idle = 0
        self._growing = False  # a timer looks whether there are enough workers
        self._refused = False  # the last thread could not be started

    def spawn(self, call: Callable[[], None]) -> None:
        """Runs a call in a worker. One that is free soon is cheaper than another thread."""
        self._jobs.put(call)
        with self._mutex:
            if self._workers == 0:
                self._start_worker()
            if not self._growing:
                self._background.call_later(_GROW_AFTER, self._grow)
                self._growing = True

    def _grow(self) -> None:
        """Starts another worker while those that there are do not get on."""
        with self._mutex:
            if self._jobs.empty() or self._workers >= _MAX_WORKERS:
                self._growing = False
                return
            if not self._idle:
                self._start_worker()
        self._background.call_later(_GROW_AFTER, self._grow)

    def _start_worker(self) -> None:
        """The caller has the mutex. If the machine refuses a thread, _grow tries again."""
        self._workers += 1
        try:
            _start("fencepost-worker", self._work)
            self._refused = False
        except Exception as error:
            self._workers -= 1
            if not self._refused:
                log.warning("a thread cannot be started, the client tries again: %s", error)
            self._refused = True

    def _work(self) -> None:
        job = self._next()
        while job is not None:
            _guard(job)
            job = self._next()

    def _next(self) -> Optional[Callable[[], None]]:
        with self._mutex:
            self._idle += 1
        job: Optional[Callable[[], None]] = None
        with suppress(queue.Empty):
            job = self._jobs.get(timeout=_WORKER_IDLE)
        with self._mutex:
            self._idle -= 1
            if job is None:
                with suppress(queue.Empty):
                    job = self._jobs.get_nowait()
            if job is None:
                self._workers -= 1
        return job


def _start(name: str, run: Callable[[], None]) -> None:
    threading.Thread(target=run, name=name, daemon=True).start()


def _guard(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:
        log.exception("a background task failed")


_background = _Background()


def _after_fork() -> None:
    """Threads do not survive a fork, nor do the timers of the parent's locks."""
    global _background
    _background = _Background()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
