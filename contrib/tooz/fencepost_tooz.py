"""The driver ``fencepost`` of OpenStack's tooz: distributed locks, without groups."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple

import tooz
from fencepost import (
    Fencepost,
    FencepostError,
    Held,
    LockHeld,
    LockLost,
    NoAnswer,
    Unavailable,
    WaitTimeout,
)
from tooz import coordination, locking, utils

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@+-")
_DAY = 86400.0  # the longest wait of one request


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (NoAnswer, Unavailable) as error:
        utils.raise_with_cause(coordination.ToozConnectionError, str(error), cause=error)
    except FencepostError as error:
        utils.raise_with_cause(tooz.ToozError, str(error), cause=error)


def _lock_name(prefix: str, name: bytes) -> str:
    """A name of any bytes in the letters of lock names: ``=2F`` is a slash."""
    raw = name.encode() if isinstance(name, str) else name
    return prefix + "".join(chr(b) if b in _PLAIN else f"={b:02X}" for b in raw)


class FencepostLock(locking.Lock):
    """A lock of a coordinator. Each acquire that succeeds is a grant of its own.

    ``release`` and ``held`` mean the newest grant of the calling thread, or else the newest one.
    """

    def __init__(self, driver: FencepostDriver, name: bytes) -> None:
        super().__init__(name)
        self._driver = driver
        self._path = _lock_name(driver.prefix, name)
        self._mutex = threading.Lock()
        self._grants: List[Tuple[int, Held]] = []  # with the thread that acquired it

    def acquire(
        self, blocking: bool = True, shared: bool = False, timeout: Optional[float] = None
    ) -> bool:
        blocking, timeout = utils.convert_blocking(blocking, timeout)
        options = self._driver.options("shared" if shared else "exclusive")
        with _translated():
            try:
                if blocking:
                    held = self._wait(timeout, options)
                else:
                    held = self._driver.client.try_lock(self._path, **options)
            except (LockHeld, WaitTimeout):
                return False
        with self._mutex:
            self._grants.append((threading.get_ident(), held))
            self._driver.add(self)
        return True

    def _wait(self, timeout: Optional[float], options: Dict[str, Any]) -> Held:
        while timeout is None:
            with contextlib.suppress(WaitTimeout):
                return self._driver.client.lock(self._path, wait=_DAY, **options)
        return self._driver.client.lock(self._path, wait=timeout, **options)

    def _newest(self) -> int:
        """The index in _grants, -1 also if there is none."""
        own = [i for i, (thread, _) in enumerate(self._grants) if thread == threading.get_ident()]
        return own[-1] if own else -1

    @property
    def held(self) -> Optional[Held]:
        """The grant: its ``fence``, for each write, ``check()`` and the event ``lost``."""
        with self._mutex:
            return self._grants[self._newest()][1] if self._grants else None

    def release(self) -> bool:
        """Returns false if the lock is not held, or was lost."""
        with self._mutex:
            if not self._grants:
                return False
            _, held = self._grants.pop(self._newest())
            if not self._grants:
                self._driver.discard(self)
        with _translated():
            try:
                held.release()
            except LockLost:
                return False
        return True

    @property
    def acquired(self) -> bool:
        return self.held is not None

    def is_still_owner(self) -> bool:
        """Reads the clocks, and what the last renewal said. It sends no request."""
        held = self.held
        if held is None:
            return False
        try:
            held.check()
        except FencepostError:
            return False
        return True

    heartbeat = is_still_owner  # the client renews


class FencepostDriver(coordination.CoordinationDriverCachedRunWatchers):
    """Locks of Fencepost. ``fencepost://`` is HTTPS, ``fencepost+http://`` is not encrypted.

    Several replicas have commas in between. Options, in the URL or of ``get_coordinator``:

    * ``token``: the bearer token; by default that of the environment, ``FENCEPOST_TOKEN``
    * ``ttl``: seconds that a dead holder blocks a lock; 30 by default
    * ``timeout``: seconds for which a call repeats a request without an answer; 10 by default
    * ``prefix``: how the names of the locks begin; ``tooz:`` by default
    """

    CHARACTERISTICS = (
        coordination.Characteristics.DISTRIBUTED_ACROSS_THREADS,
        coordination.Characteristics.DISTRIBUTED_ACROSS_PROCESSES,
        coordination.Characteristics.DISTRIBUTED_ACROSS_HOSTS,
        coordination.Characteristics.LINEARIZABLE,
    )

    def __init__(self, member_id: bytes, parsed_url: Any, options: Dict[str, Any]) -> None:
        super().__init__(member_id, parsed_url, options)
        self.requires_beating = False
        options = utils.collapse(options)
        scheme = "http" if parsed_url.scheme.endswith("+http") else "https"
        path = parsed_url.path.rstrip("/")
        self._urls = [f"{scheme}://{host}{path}" for host in parsed_url.netloc.split(",")]
        self._token = options.get("token") or os.environ.get("FENCEPOST_TOKEN", "")
        self._ttl = float(options.get("ttl", 30))
        self._timeout = float(options.get("timeout", 10))
        self.prefix = str(options.get("prefix", "tooz:"))
        self._mutex = threading.Lock()
        self._acquired: Dict[FencepostLock, None] = {}

    def _start(self) -> None:
        self.client = Fencepost(self._urls, self._token, retry_for=self._timeout)
        try:
            with _translated():
                next(self.client.list(self.prefix), None)
        except tooz.ToozError:
            self.client.close()
            raise

    def _stop(self) -> None:
        """Releases what is held, as other drivers do."""
        with self._mutex:
            locks = list(self._acquired)
        for lock in locks:
            while lock.acquired:
                with contextlib.suppress(tooz.ToozError):  # logged; the TTL is the limit
                    lock.release()
        self.client.close()

    def get_lock(self, name: bytes) -> FencepostLock:
        return FencepostLock(self, name)

    def heartbeat(self) -> float:
        """Sends nothing: the client renews each lock by itself, at a third of the TTL."""
        return self._ttl / 3

    def options(self, mode: str) -> Dict[str, Any]:
        """Without a holder's name: threads of a member may wait for each other."""
        member = self._member_id
        text = member.decode(errors="replace") if isinstance(member, bytes) else str(member)
        return {"mode": mode, "ttl": self._ttl, "metadata": {"member": text}}

    def add(self, lock: FencepostLock) -> None:
        with self._mutex:
            self._acquired[lock] = None

    def discard(self, lock: FencepostLock) -> None:
        with self._mutex:
            self._acquired.pop(lock, None)
