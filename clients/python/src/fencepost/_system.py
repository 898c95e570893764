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


class System:
    """The seam to clocks and threads, which the tests replace."""

    _boot = getattr(time, "CLOCK_BOOTTIME", None)

    def read(self) -> Reading:
        boot = None if self._boot is None else time.clock_gettime(self._boot)
        return Reading(time.monotonic(), boot, time.time())

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        return _background.call_later(delay, call)

    def spawn(self, call: Callable[[], None]) -> None:
        _background.spawn(call)


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
        self._mutex = threading.Lock()
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._workers = self._idle = 0
        self._growing = False  # a timer looks whether there are enough workers

    def call_later(self, delay: float, call: Callable[[], None]) -> _Timer:
        timer = _Timer(time.monotonic() + delay, call)
        with self._changed:
            heapq.heappush(self._timers, timer)
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="fencepost", daemon=True).start()
            elif self._timers[0] is timer:
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

    def spawn(self, call: Callable[[], None]) -> None:
        """Runs a call in a worker. One that is free soon is cheaper than another thread."""
        self._jobs.put(call)
        with self._mutex:
            if self._workers == 0:
                self._start_worker()
            elif self._growing:
                return
            self._growing = True
        self.call_later(_GROW_AFTER, self._grow)

    def _grow(self) -> None:
        """Starts another worker while those that there are do not get on."""
        with self._mutex:
            if self._jobs.empty() or self._workers >= _MAX_WORKERS:
                self._growing = False
                return
            if not self._idle:
                self._start_worker()
        self.call_later(_GROW_AFTER, self._grow)

    def _start_worker(self) -> None:
        """The caller has the mutex."""
        self._workers += 1
        threading.Thread(target=self._work, name="fencepost-worker", daemon=True).start()

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
