"""How requests are sent: one protocol for both kinds of client.

The protocol of this package is written once, as coroutines that ask an :class:`IO` to send and to
sleep. :class:`AsyncIO` awaits; :class:`BlockingIO` blocks and never awaits, so :func:`run` drives
such a coroutine to its end in one step.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import weakref
from contextlib import suppress
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Dict,
    Generic,
    Iterator,
    List,
    NamedTuple,
    Optional,
    TypeVar,
    Union,
)

import httpx

from ._errors import Cancelled
from ._system import System

T = TypeVar("T")

_MAX_ANSWER = 16 << 20  # bytes
_MAX_IDLE = 16  # connections that a client keeps
_LIMITS = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=30)

Token = Union[str, Callable[[], str]]
Propagate = Callable[[Dict[str, str]], Any]


class Request(NamedTuple):
    """One request, wherever it is sent."""

    method: str
    path: str
    timeout: float  # seconds, of one attempt
    token: str = ""  # of the lock
    key: str = ""  # Idempotency-Key
    after: str = ""  # Last-Event-ID
    body: Optional[Dict[str, Any]] = None


class Answer(NamedTuple):
    """What a server, or a proxy in front of it, sent."""

    status: int
    retry_after: str
    body: bytes


class Opened(NamedTuple):
    """An answer whose head is there."""

    status: int
    retry_after: str
    chunks: AsyncIterator[bytes]
    close: Callable[[bool], Awaitable[None]]  # whether the connection may be used again


class Lane:
    """One connection, which another thread can cut."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport
        self._socket: Optional[socket.socket] = None

    def send(self, request: httpx.Request) -> httpx.Response:
        if self._socket is None:  # a trace costs, and the connection is made once
            request.extensions["trace"] = self._trace
        return self._transport.handle_request(request)

    def _trace(self, event: str, info: Dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")

    def abort(self) -> None:
        """Ends a request under way. SSLSocket.shutdown would disturb the thread that reads."""
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._transport.close()


L = TypeVar("L")


class Lanes(Generic[L]):
    """Connections that are not in use. One pool for all would search it for each request."""

    def __init__(self, connect: Callable[[], L]) -> None:
        self._connect = connect
        self.idle: List[L] = []
        self.closed = False

    def take(self) -> L:
        with suppress(IndexError):
            return self.idle.pop()
        return self._connect()

    def give(self, lane: L) -> bool:
        """Keeps a lane. It reports false if the caller has to close it."""
        if self.closed or len(self.idle) >= _MAX_IDLE:
            return False
        self.idle.append(lane)
        return True


class IO:
    """Sends requests and sleeps."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def open(self, request: httpx.Request) -> Opened:
        raise NotImplementedError

    async def send(self, base: str, request: Request, timeout: float) -> Answer:
        """Sends a request and reads the whole answer."""
        opened = await self.open(self._wire.prepare(base, request, timeout))
        return await read_all(opened)


async def read_all(opened: Opened) -> Answer:
    whole = False
    try:
        body = bytearray()
        async for chunk in opened.chunks:
            body += chunk
            if len(body) > _MAX_ANSWER:
                raise ValueError("the answer is too long")
        whole = True
    finally:
        await opened.close(whole)
    return Answer(opened.status, opened.retry_after, bytes(body))


class BlockingIO(IO):
    """Blocks the calling thread. Another thread may end what it does by :meth:`abort`."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._lane: Optional[Lane] = None
        self._aborted = False

    async def sleep(self, seconds: float) -> None:
        self._wire.system.sleep(seconds)

    async def open(self, request: httpx.Request) -> Opened:
        lanes = self._wire.lanes
        lane = self._lane = lanes.take()
        try:
            if self._aborted:
                raise Cancelled("cancelled", "the request is given up")
            response = lane.send(request)
        except BaseException:
            lane.close()
            raise

        async def close(reuse: bool) -> None:
            self._lane = None
            response.close()
            if not reuse or not lanes.give(lane):
                lane.close()

        return Opened(
            response.status_code, response.headers.get("retry-after", ""), _each(response), close
        )

    def abort(self) -> None:
        self._aborted = True
        lane = self._lane
        if lane is not None:
            lane.abort()


async def _each(response: httpx.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx.SyncByteStream)
    for chunk in response.stream:
        yield chunk


class AsyncIO(IO):
    """Awaits in the event loop of the caller."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def send(self, base: str, request: Request, timeout: float) -> Answer:
        """Sends in a task of its own: a timeout is not mistaken for a cancel of the caller.

        That of httpx is for each step of the exchange, and comes first.
        """
        task = asyncio.ensure_future(super().send(base, request, timeout))
        try:
            await asyncio.wait([task], timeout=timeout + 0.01)
            if task.done():
                return task.result()
            raise TimeoutError
        finally:
            if not task.done():
                task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                task.cancel()

    async def open(self, request: httpx.Request) -> Opened:
        lanes = self._wire.async_lanes
        lane = lanes.take()
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            await lane.aclose()
            raise
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)

        async def close(reuse: bool) -> None:
            await response.aclose()
            if not reuse or not lanes.give(lane):
                await lane.aclose()

        return Opened(
            response.status_code, response.headers.get("retry-after", ""), stream.__aiter__(), close
        )


class Wire:
    """Prepares requests, and knows the connections of a client."""

    def __init__(
        self,
        system: System,
        token: Token,
        propagate: Optional[Propagate],
        verify: Optional[ssl.SSLContext],
        proxy: Optional[str],
    ) -> None:
        self.system = system
        self._token = token
        self._propagate = propagate
        self._options: Dict[str, Any] = {"verify": verify, "proxy": proxy, "limits": _LIMITS}
        self.reset()
        _wires.add(self)

    def reset(self) -> None:
        """Begins without connections; those of a parent process are not used."""
        self.lanes = Lanes(self._connect)
        self.async_lanes = Lanes(self._connect_async)

    def _connect(self) -> Lane:
        return Lane(httpx.HTTPTransport(**self._verified()))

    def _connect_async(self) -> httpx.AsyncBaseTransport:
        return httpx.AsyncHTTPTransport(**self._verified())

    def _verified(self) -> Dict[str, Any]:
        if self._options["verify"] is None:  # once: it reads all certificates of the machine
            self._options["verify"] = httpx.create_ssl_context()
        return self._options

    def prepare(self, base: str, request: Request, timeout: float) -> httpx.Request:
        headers: Dict[str, str] = {}
        if self._propagate is not None:
            self._propagate(headers)
        token = self._token if isinstance(self._token, str) else self._token()
        headers["Authorization"] = f"Bearer {token}"
        if request.token:
            headers["Lock-Token"] = request.token
        if request.key:
            headers["Idempotency-Key"] = request.key
        if request.after:
            headers["Last-Event-ID"] = request.after
        content = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(request.body).encode()
        times = {"connect": min(timeout, 10.0), "read": timeout, "write": timeout, "pool": timeout}
        return httpx.Request(
            request.method,
            base + request.path,
            headers=headers,
            content=content,
            extensions={"timeout": times},
        )

    def close(self) -> None:
        self.lanes.closed = True
        while self.lanes.idle:
            self.lanes.idle.pop().close()

    async def close_async(self) -> None:
        self.async_lanes.closed = True
        while self.async_lanes.idle:
            await self.async_lanes.idle.pop().aclose()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


_wires: weakref.WeakSet[Wire] = weakref.WeakSet()


def _after_fork() -> None:
    for wire in list(_wires):
        wire.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drives a coroutine whose IO blocks."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise RuntimeError("a blocking call awaits")


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """Drives an async generator whose IO blocks."""

    async def step() -> T:
        return await items.__anext__()

    try:
        while True:
            try:
                item = run(step())
            except StopAsyncIteration:
                return
            yield item
    finally:
        run(items.aclose())  # type: ignore[attr-defined]
