"""Virtual time for threads and event loops: one of them runs at a time."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import selectors
import threading
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

from fencepost._system import Reading, System


class Over(BaseException):
    """The run is over."""


class Actor:
    """A thread that waits at a seam until the world wakes it."""

    def __init__(self, world: World, work: Callable[[], None]) -> None:
        self.world = world
        self.go = threading.Semaphore(0)
        self.done = False
        self.raises: Optional[BaseException] = None  # instead of waking up
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        self.go.acquire()
        self.world.local.actor = self
        try:
            work()
        except Over:
            pass
        finally:
            self.done = True
            self.world.blocked.release()


class Timer:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Optional[Callable[[], None]] = call

    def cancel(self) -> None:
        self.call = None


class Event:
    """What a thread waits for at a seam."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.actor: Optional[Actor] = None
        self.on = False

    def is_set(self) -> bool:
        return self.on

    def set(self) -> None:
        self.on = True
        if self.actor is not None:
            self.world.wake(self.actor)

    def wait(self, timeout: Optional[float] = None) -> bool:
        if not self.on:
            self.actor = self.world.local.actor
            try:
                self.world.wait(timeout)
            finally:
                self.actor = None
        return self.on


class World(System):
    """The clocks and threads of one run. The thread that made it conducts."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept = 0.0  # that the monotonic clock does not show
        self.set = 0.0  # by which the wall clock was set
        self.has_boot = True
        self.over = False
        self.local = threading.local()
        self.blocked = threading.Semaphore(0)
        self._ready: Deque[Actor] = deque()
        self._timers: List[Tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._actors: List[Actor] = []
        self.settled: Callable[[], None] = lambda: None

    # What the client calls.

    def read(self) -> Reading:
        passed = self.now + self.slept
        return Reading(self.now, 60 + passed if self.has_boot else None, 3600 + passed + self.set)

    def event(self) -> Event:
        return Event(self)

    def ready(self) -> None:
        pass

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = Timer(call)
        heapq.heappush(self._timers, (self.now + delay, next(self._order), timer))
        return timer

    def spawn(self, call: Callable[[], None], leaves: bool = False) -> None:
        self.begin(call)

    # What the runner calls.

    def begin(self, work: Callable[[], None]) -> Actor:
        actor = Actor(self, work)
        self._actors.append(actor)
        self._ready.append(actor)
        return actor

    def wait(self, seconds: Optional[float]) -> None:
        """Waits in the thread of an actor, until the time has come or :meth:`wake`."""
        if self.over:
            raise Over
        actor: Actor = self.local.actor
        timer = None
        if seconds is not None:
            timer = self.call_later(seconds, lambda: self.wake(actor))
        self.blocked.release()
        actor.go.acquire()
        if timer is not None:
            timer.cancel()
        raises, actor.raises = actor.raises, None
        if self.over:
            raise Over
        if raises is not None:
            raise raises

    def wake(self, actor: Actor, raises: Optional[BaseException] = None) -> None:
        actor.raises = raises
        if actor not in self._ready:
            self._ready.append(actor)

    def settle(self) -> None:
        """Runs everything that can run."""
        for _ in itertools.repeat(None, 100_000):
            if not self._ready:
                break
            actor = self._ready.popleft()
            actor.go.release()
            assert self.blocked.acquire(timeout=20), "a thread waits outside of the seams"
        else:
            raise AssertionError("the threads wake each other without an end")
        self.settled()

    def run_until(self, end: float) -> None:
        self.settle()
        while self._timers and self._timers[0][0] <= end + 1e-6:
            when, _, timer = heapq.heappop(self._timers)
            self.now = max(self.now, when)
            call, timer.call = timer.call, None
            if call is not None:
                call()
                self.settle()
        self.now = max(self.now, end)

    def end(self) -> None:
        self.over = True
        for actor in self._actors:
            if not actor.done:
                actor.go.release()
                assert self.blocked.acquire(timeout=20)
            actor.thread.join(20)


class _Selector(selectors.SelectSelector):
    """Lets a loop wait in the world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.woken = False

    def select(self, timeout: Optional[float] = None) -> Any:
        if self.woken or (timeout is not None and timeout <= 0):
            self.woken = False
            return []
        self.world.wait(timeout)
        self.woken = False
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, in a thread of the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._wakes = _Selector(world)
        super().__init__(self._wakes)
        self.actor: Optional[Actor] = None
        self._ties = itertools.count()

    def time(self) -> float:
        return self.world.now

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, **more: Any
    ) -> Any:
        """Timers of one time run in the order in which they were set."""
        return super().call_at(when + next(self._ties) * 1e-10, callback, *args, **more)

    def _write_to_self(self) -> None:
        self._wakes.woken = True
        if self.actor is not None:
            self.world.wake(self.actor)

    def start(self) -> None:
        def work() -> None:
            asyncio.set_event_loop(self)
            self.run_forever()

        self.actor = self.world.begin(work)
