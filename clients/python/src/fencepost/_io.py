"""How requests are sent: one protocol for both kinds of client.

The protocol of this package is written once, as coroutines that ask an :class:`IO` to send and to
sleep. :class:`AsyncIO` awaits; :class:`BlockingIO` blocks and never awaits, so :func:`run` drives
such a coroutine to its end in one step.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    NamedTuple,
    Optional,
    TypeVar,
)

import httpx

from ._errors import Cancelled, Unexpected, cancelled
from ._wire import Answer, Lane, Request, Wire

T = TypeVar("T")

_MAX_ANSWER = 16 << 20  # bytes


class Opened(NamedTuple):
    """An answer whose head is there."""

    status: int
    retry_after: str
    chunks: AsyncIterator[bytes]
    close: Callable[[bool], Awaitable[None]]  # whether the connection may be used again


class IO:
    """Sends requests and sleeps, until :meth:`abort`."""

    aborted = False

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    async def open(self, base: str, request: Request, timeout: float) -> Opened:
        raise NotImplementedError

    async def within(self, work: Awaitable[T], timeout: Optional[float]) -> T:
        """Awaits work that :meth:`abort` can end, and so can the time."""
        return await work

    async def send(self, base: str, request: Request, timeout: float) -> Answer:
        """Sends a request and reads the whole answer."""
        return await self.within(self._send(base, request, timeout), timeout + 0.01)

    async def _send(self, base: str, request: Request, timeout: float) -> Answer:
        return await read_all(await self.open(base, request, timeout))

    def abort(self) -> None:
        """Ends a request or a sleep that is under way, and those to come."""
        raise NotImplementedError


async def read_all(opened: Opened) -> Answer:
    whole = False
    try:
        body = bytearray()
        async for chunk in opened.chunks:
            body += chunk
            if len(body) > _MAX_ANSWER:
                raise Unexpected("the answer is too long")
        whole = True
    finally:
        await opened.close(whole)
    return Answer(opened.status, opened.retry_after, bytes(body))


class BlockingIO(IO):
    """Blocks the calling thread. Another thread may end what it does by :meth:`abort`."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._lane: Optional[Lane] = None
        self._woken = wire.system.event()

    async def sleep(self, seconds: float) -> None:
        self._woken.wait(seconds)

    async def open(self, base: str, request: Request, timeout: float) -> Opened:
        prepared = self._wire.prepare(base, request, timeout)
        lanes = self._wire.lanes
        lane = self._lane = lanes.take(base)
        try:
            if self.aborted:
                raise cancelled()
            response = lane.send(prepared)
        except BaseException:
            lane.close()
            raise

        async def close(reuse: bool) -> None:
            self._lane = None
            response.close()
            if not reuse or not lanes.give(base, lane):
                lane.close()

        return Opened(
            response.status_code, response.headers.get("retry-after", ""), _each(response), close
        )

    def abort(self) -> None:
        self.aborted = True
        self._woken.set()
        lane = self._lane
        if lane is not None:
            lane.abort()


async def _each(response: httpx.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx.SyncByteStream)
    for chunk in response.stream:
        yield chunk


class AsyncIO(IO):
    """Awaits in the event loop of the caller."""

    _task: Optional[asyncio.Future[Any]] = None

    async def sleep(self, seconds: float) -> None:
        with suppress(Cancelled):
            await self.within(asyncio.sleep(seconds), None)

    async def within(self, work: Awaitable[T], timeout: Optional[float]) -> T:
        """Awaits in a task of its own: an end of it is not mistaken for a cancel of the caller.

        The timeout of httpx is for each step of the exchange, and comes first.
        """
        task: asyncio.Future[T] = asyncio.ensure_future(work)
        self._task = task
        try:
            await asyncio.wait([task], timeout=timeout)
            if self.aborted:
                raise cancelled()
            if task.done():
                return task.result()
            raise TimeoutError
        finally:
            self._task = None
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            task.cancel()

    def abort(self) -> None:
        self.aborted = True
        if self._task is not None:
            self._task.cancel()

    async def open(self, base: str, request: Request, timeout: float) -> Opened:
        prepared = self._wire.prepare(base, request, timeout)
        lanes = self._wire.async_lanes
        lane = lanes.take(base)
        try:
            response = await lane.handle_async_request(prepared)
        except BaseException:
            await lane.aclose()
            raise
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)

        async def close(reuse: bool) -> None:
            await response.aclose()
            if not reuse or not lanes.give(base, lane):
                await lane.aclose()

        return Opened(
            response.status_code, response.headers.get("retry-after", ""), stream.__aiter__(), close
        )


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
