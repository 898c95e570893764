"""What both clients have in common."""

from __future__ import annotations

import os
import ssl
import threading
from typing import Any, AsyncIterator, Callable, Dict, Optional, Sequence, Set, Union, cast
from urllib.parse import urlencode, urlsplit

from ._acquire import Acquisition, entry_of
from ._errors import Cancelled, FencepostError, LockLost, lost
from ._events import Event
from ._io import IO, BlockingIO
from ._lease import Lease
from ._look import Lock, LockSummary
from ._options import Settings, Target, lock_path, set_of, target_of
from ._repeat import REQUEST_TIMEOUT, Limit, ask, repeat
from ._system import Reading, System, Timer
from ._wire import Propagate, Request, Token, Wire

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

        ``urls`` are base addresses of replicas, or of what balances requests over them. The client
        uses one of them until it fails, then the next. ``token`` is the bearer token, or a
        function that returns it for each request; any thread may call it.

        ``retry_for`` is how long a call repeats a request that the servers do not answer, beyond
        the time that it waits for a lock. ``propagate`` adds headers to a request, such as
        ``opentelemetry.propagate.inject``. ``verify`` is for TLS, and ``proxy`` the URL of an HTTP
        proxy; that of the environment is not used.
        """
        self.urls = [_base_url(url) for url in ([urls] if isinstance(urls, str) else urls)]
        if not self.urls:
            raise ValueError("fencepost: a URL is required")
        self.retry_for = retry_for
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
        self._tasks = 0  # renewals, and requests that leave a queue after a cancelled call
        self._watch: Optional[Timer] = None
        self._last = self.read()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.urls!r})"

    def read(self) -> Reading:
        return self.system.read()

    def blocking(self) -> BlockingIO:
        if os.getpid() != self._pid:
            self._begin_again()
        return BlockingIO(self.wire)

    def within(self, seconds: float, leaving: bool = False) -> Limit:
        """Limits a call to a time from now on."""
        begun = self.read()
        return Limit(lambda: 0.0 if leaving and self._over else seconds - self.read().since(begun))

    def move_on(self, at: int) -> None:
        """Passes over a URL that failed, unless another call has done so."""
        with self._mutex:
            if self.current == at:
                self.current = (at + 1) % len(self.urls)

    def begin(self) -> bool:
        """Counts a task that close waits for. It reports false after close."""
        with self._mutex:
            if not self._closed:
                self._tasks += 1
            return not self._closed

    def end(self) -> None:
        with self._mutex:
            self._tasks -= 1

    def spawn(self, work: Callable[[], None]) -> None:
        if not self.begin():
            return

        def counted() -> None:
            try:
                work()
            finally:
                self.end()

        self.system.spawn(counted)

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

    def acquisition(self, target: Target, options: Dict[str, Any]) -> Acquisition:
        if self._closed and os.getpid() == self._pid:
            raise Cancelled("cancelled", "the client is closed")
        return Acquisition(self, target, Settings(**options))

    def claimed(self, event: Event, options: Dict[str, Any]) -> Acquisition:
        """The acquisition that claims a grant: a renewal is all that it sends."""
        entry = event.data.get("entry") or {}
        names = event.data.get("locks")
        target = set_of(names) if names else target_of(str(event.data.get("lock")))
        if event.type != "lock.acquired" or not entry.get("token"):
            raise lost(target.name, "not_granted")
        options["wait"] = float(entry["ttl_seconds"])  # it can be claimed for so long
        acquisition = self.acquisition(target, options)
        acquisition.is_async = True
        acquisition.entry = entry_of({**entry, "locks": None, "state": "held"})
        return acquisition

    def queued(
        self, name: str, callback_url: Optional[str], options: Dict[str, Any]
    ) -> Acquisition:
        acquisition = self.acquisition(target_of(name), options)
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
        for lease in held:
            lease.end(lost(lease.name, "closed"))
        begun = self.read()
        while self._tasks and self.read().since(begun) < _CLOSE_TIMEOUT:
            await io.sleep(0.02)
        self._over = True
        self.wire.close()


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    good = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    if not good or parts.query or parts.fragment:
        raise ValueError("fencepost: a base URL is http://host or https://host, and a path")
    return url.rstrip("/")


def passes(error: FencepostError) -> bool:
    """Whether a later acquire may succeed."""
    if isinstance(error, LockLost) or error.code == "no_answer":
        return True
    return error.status in (423, 429) or error.status >= 500
