"""What both clients have in common."""

from __future__ import annotations

import os
import re
import ssl
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import AsyncIterator, Callable, Iterator, List, Optional, Sequence, Set, Union, cast
from urllib.parse import urlencode, urlsplit

import httpx

from ._acquire import Acquisition, Entry, entry_of
from ._errors import FencepostError, LockLost, cancelled, lost
from ._events import Event
from ._io import IO, BlockingIO
from ._lease import Lease
from ._look import Lock, LockSummary
from ._options import Settings, Target, lock_path, seconds, set_of, target_of
from ._repeat import REQUEST_TIMEOUT, Limit, ask, repeat
from ._system import Reading, System, Timer, log
from ._wire import Propagate, Request, Token, Wire, sendable_token

_WATCH_EVERY = 1.0  # seconds
_WATCH_SLACK = 0.05
_CLOSE_TIMEOUT = 2.0  # how long close lets calls that were cancelled leave their queues


class Base:
    """What both clients have in common."""

    def __init__(
        self,
        urls: Union[str, Sequence[str]],
        token: Token,
        *,
        retry_for: float = 30.0,
        propagate: Optional[Propagate] = None,
        verify: Optional[ssl.SSLContext] = None,
        proxy: Optional[str] = None,
        _system: Optional[System] = None,
    ) -> None:
        """Sends no request.

        ``urls`` are base addresses of replicas, or of what balances requests over them, in a list
        or with commas in between. The client uses one of them until it fails, then the next.
        ``token`` is the bearer token, or a function that returns it for each request; any thread
        may call it. Blanks around both are dropped. What cannot be one is a :class:`ValueError`.

        ``retry_for`` is for how many seconds a call repeats a request that the servers do not
        answer, beyond the time that it waits for a lock. ``propagate`` adds headers to a request,
        such as ``opentelemetry.propagate.inject``. ``verify`` is for TLS, and ``proxy`` the URL of
        an HTTP proxy; by default that of the environment, but never for this machine itself.
        """
        self.urls = _base_urls(urls)
        self.retry_for = seconds("retry_for", retry_for)
        self.system = _system or System()
        self.wire = Wire(self.system, token, propagate, verify, proxy)
        self.current = 0  # index of the URL in use
        self._pid = 0
        self._begin_again()

    def _begin_again(self) -> None:
        """Begins without locks and tasks, also in the child of a fork: threads are not there."""
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._closed = False
        self._over = False  # what leaves queues has to stop
        self._held: Set[Lease] = set()
        self._calls: Set[IO] = set()  # that close ends
        self._tasks = 0  # that close waits for: acquires, renewals, releases, what leaves queues
        self.failing = False  # no server has answered since the last warning
        self._watch: Optional[Timer] = None
        self._last = self.read()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.urls!r})"

    def read(self) -> Reading:
        return self.system.read()

    def opened(self) -> None:
        """Raises if the client is closed. That of a parent process begins again."""
        if os.getpid() != self._pid:
            self._begin_again()
        if self._closed:
            raise cancelled()

    def blocking(self) -> BlockingIO:
        if os.getpid() != self._pid:
            self._begin_again()
        return BlockingIO(self.wire)

    def within(self, seconds: float, leaving: bool = False) -> Limit:
        """Limits a call to a time from now on."""
        begun = self.read()
        ends = leaving and not self._over  # an answer that comes even later is taken back, too
        return Limit(
            lambda: 0.0 if ends and self._over else seconds - self.read().since(begun),
            leaves=leaving,
        )

    def move_on(self, at: int, error: Optional[FencepostError]) -> None:
        """Passes over a URL that failed, unless another call has done so.

        The first of a row of errors is logged: the next ones may last for a minute.
        """
        with self._mutex:
            if self.current == at:
                self.current = (at + 1) % len(self.urls)
            warns = error is not None and not self.failing
            self.failing = self.failing or warns
        if warns:
            log.warning("%s fails, the client tries again: %s", self.urls[at], error)

    @contextmanager
    def ending(self, io: IO) -> Iterator[None]:
        """A call that close ends."""
        with self._mutex:
            if self._closed:
                raise cancelled()
            self._calls.add(io)
        try:
            yield
        finally:
            with self._mutex:
                self._calls.discard(io)

    async def pause(self, io: IO, seconds: float) -> None:
        with self.ending(io):
            await io.sleep(seconds)
        if io.aborted:
            raise cancelled()

    def begin(self) -> None:
        """Counts a task that close waits for."""
        with self._mutex:
            self._tasks += 1

    def end(self) -> None:
        with self._mutex:
            self._tasks -= 1

    def spawn(self, work: Callable[[], None], leaves: bool = False) -> None:
        def counted() -> None:
            try:
                work()
            finally:
                self.end()

        self.begin()
        try:
            self.system.spawn(counted, leaves)
        except BaseException:
            self.end()
            raise

    def keep(self, lease: Lease) -> bool:
        """Watches the clocks for a held lock. It reports false after close."""
        now = self.read()
        with self._mutex:
            if self._closed:
                return False
            self._held.add(lease)
            if self._watch is None:
                self._last = now
                self._watch = self.system.call_later(_WATCH_EVERY, self._look)
        return True

    def drop(self, lease: Lease) -> None:
        with self._mutex:
            self._held.discard(lease)

    def _look(self) -> None:
        """Looks whether the machine was suspended: timers stand still then, and have to be set."""
        now = self.read()
        with self._mutex:
            slept = now.since(self._last) - (now.monotonic - self._last.monotonic)
            self._last = now
            held = list(self._held) if slept > _WATCH_SLACK else []
            self._watch = None
            if self._held:
                self._watch = self.system.call_later(_WATCH_EVERY, self._look)
        for lease in held:
            lease._look()

    def acquisition(self, target: Target, settings: Settings) -> Acquisition:
        self.opened()
        self.system.ready()  # what fails here has sent nothing
        return Acquisition(self, target, settings)

    def adopted(self, name: str, token: str, settings: Settings) -> Acquisition:
        """The acquisition that renews the lock of another process first."""
        acquisition = self.acquisition(target_of(name), settings)
        acquisition.is_async = True
        acquisition.entry = Entry(state="held", token=sendable_token(token))
        return acquisition

    def claimed(self, event: Event, settings: Settings) -> Acquisition:
        """The acquisition that claims a grant: a renewal is all that it sends."""
        entry = event.data.get("entry") or {}
        names = event.data.get("locks")
        target = set_of(names) if names else target_of(str(event.data.get("lock")))
        if event.type != "lock.acquired" or not entry.get("token"):
            raise lost(target.name, "not_granted")
        settings = replace(settings, wait=float(entry["ttl_seconds"]))  # it can be claimed so long
        acquisition = self.acquisition(target, settings)
        acquisition.is_async = True
        acquisition.entry = entry_of({**entry, "locks": None, "state": "held"})
        return acquisition

    def queued(self, name: str, callback_url: Optional[str], settings: Settings) -> Acquisition:
        acquisition = self.acquisition(target_of(name), settings)
        acquisition.is_async = True
        acquisition.callback = callback_url
        return acquisition

    async def enqueue(self, acquisition: Acquisition, io: IO) -> None:
        with acquisition:
            await repeat(self, io, self.within(self.retry_for), acquisition.next)

    async def pages(self, io: IO, prefix: str, state: str) -> AsyncIterator[LockSummary]:
        query = {name: value for name, value in (("prefix", prefix), ("state", state)) if value}
        while True:
            path = "/locks" + ("?" + urlencode(query, safe=":") if query else "")
            page = await ask(self, io, Request("GET", path, REQUEST_TIMEOUT))
            for lock in page.get("locks", ()):
                yield lock
            if not page.get("next_cursor"):
                return
            query["cursor"] = page["next_cursor"]

    async def look_at(self, io: IO, name: str) -> Lock:
        answer = await ask(self, io, Request("GET", lock_path(name), REQUEST_TIMEOUT))
        return cast(Lock, answer)

    async def report(self, io: IO, name: str, presented: int, known: int, resource: str) -> None:
        body = {"fence_presented": presented, "fence_known": known, "resource": resource}
        path = lock_path(name) + "/stale-writes"
        await ask(self, io, Request("POST", path, REQUEST_TIMEOUT, body=body))

    async def shut(self, io: IO) -> None:
        with self._mutex:
            self._closed = True
            held, self._held = self._held, set()
            calls = list(self._calls)
        for lease in held:
            lease.end(lost(lease.name, "closed"))
        for call in calls:
            call.abort()
        begun = self.read()
        while self._tasks and self.read().since(begun) < _CLOSE_TIMEOUT:
            await io.sleep(0.02)
        self._over = True
        self.wire.close()


def _base_urls(urls: Union[str, Sequence[str]]) -> List[str]:
    texts = urls.split(",") if isinstance(urls, str) else list(urls or ())
    given = [text.strip() if isinstance(text, str) else "?" for text in texts]
    for i, url in enumerate(given, 1):
        if url and not _is_base(url):  # it may have a password, so it is not shown
            raise ValueError(
                f"fencepost: URL {i} of {len(given)} is not http://host or https://host and a path"
            )
    found = [url.rstrip("/") for url in given if url]
    if not found:
        raise ValueError("fencepost: a URL is required")
    return found


def _is_base(url: str) -> bool:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        return False
    return bool(good) and not re.search(r"[\s@?#]", url)


def passes(error: FencepostError) -> bool:
    """Whether a later acquire may succeed."""
    if isinstance(error, LockLost) or error.code == "no_answer":
        return True
    return error.status in (423, 429) or error.status >= 500
