"""What the vectors replace: connections that are cut, threads and timers."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, Dict, Iterator, List

import httpx
import pytest

from fencepost import Fencepost, _system
from fencepost._io import BlockingIO, run
from fencepost._wire import Request, Wire


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def silent(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_another_thread_cuts_a_request(listener: socket.socket, silent: str) -> None:
    io = BlockingIO(Wire(_system.System(), "T", None, None, None))

    ended = threading.Event()

    def cut() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            io.abort()
            ended.wait(20)

    cutter = threading.Thread(target=cut)
    cutter.start()
    begun = time.monotonic()
    with pytest.raises(httpx.HTTPError):
        run(io.send(silent, Request("PUT", "/locks/a/renew", 30), 30))
    assert time.monotonic() - begun < 10
    ended.set()
    cutter.join()


def test_a_request_that_was_cut_while_it_connected_ends(
    listener: socket.socket, silent: str
) -> None:
    io = BlockingIO(Wire(_system.System(), "T", None, None, None))
    lane = io._wire._connect(silent)
    io._wire.lanes.give(silent, lane)
    trace = lane._trace

    def cut_first(event: str, info: Dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            io.abort()
        trace(event, info)

    lane._trace = cut_first  # type: ignore[method-assign]
    begun = time.monotonic()
    with pytest.raises(httpx.HTTPError):
        run(io.send(silent, Request("PUT", "/locks/a/renew", 30), 30))
    assert time.monotonic() - begun < 10


def test_a_request_that_was_cut_before_it_began_is_not_sent(silent: str) -> None:
    wire = Wire(_system.System(), "T", None, None, None)
    io = BlockingIO(wire)
    io.abort()
    begun = time.monotonic()
    with pytest.raises(Exception, match="closed"):
        run(io.send(silent, Request("PUT", "/locks/a/renew", 30), 30))
    assert time.monotonic() - begun < 5


def test_a_request_without_an_answer_ends_in_time(silent: str) -> None:
    wire = Wire(_system.System(), "T", None, None, None)
    with pytest.raises(httpx.ReadTimeout):
        run(BlockingIO(wire).send(silent, Request("GET", "/locks/a", 30), 0.3))


def test_work_that_hangs_does_not_stop_other_work() -> None:
    background = _system._Background()
    free, done = threading.Event(), threading.Event()

    def hang() -> None:
        free.wait(20)

    for _ in range(5):
        background.renewals.spawn(hang)
    background.renewals.spawn(done.set)
    assert done.wait(10)
    free.set()


def refuse_threads(monkeypatch: pytest.MonkeyPatch, times: int) -> List[str]:
    """Lets the machine refuse so many threads."""
    refused: List[str] = []
    start = threading.Thread.start

    def refusing(thread: threading.Thread) -> None:
        if len(refused) < times:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)
    return refused


def test_timers_begin_after_a_thread_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    background, done = _system._Background(), threading.Event()
    refuse_threads(monkeypatch, 1)
    with pytest.raises(RuntimeError):
        background.call_later(0, done.set)
    background.call_later(0, done.set)
    assert done.wait(10)


def test_work_begins_after_workers_were_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    background, done, more = _system._Background(), threading.Event(), threading.Event()
    background.begin()
    refused = refuse_threads(monkeypatch, 3)
    background.renewals.spawn(done.set)
    assert done.wait(10)
    assert refused == ["fencepost-worker"] * 3
    background.renewals.spawn(more.set)
    assert more.wait(10)


def test_an_acquire_that_gets_no_thread_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    monkeypatch.setattr(_system, "_background", _system._Background())
    refuse_threads(monkeypatch, 1)
    with pytest.raises(RuntimeError), Fencepost(silent, "T").lock("a"):
        pass


def test_calls_that_leave_queues_take_no_worker_from_renewals() -> None:
    background = _system._Background()
    free, done = threading.Event(), threading.Event()

    def hang() -> None:
        free.wait(20)

    for _ in range(_system._MAX_WORKERS + 50):
        background.leaves.spawn(hang)

    def all_hang() -> bool:
        return background.leaves._workers == _system._MAX_WORKERS

    end = time.monotonic() + 20
    while not all_hang() and time.monotonic() < end:
        threading.Event().wait(0.05)
    assert all_hang()
    background.renewals.spawn(done.set)
    assert done.wait(10)
    free.set()


def test_timers_run_in_their_order_unless_they_are_cancelled() -> None:
    background = _system._Background()
    seen: List[int] = []
    done = threading.Event()
    background.call_later(0.3, done.set)
    background.call_later(0.2, lambda: seen.append(2))
    background.call_later(0.1, lambda: seen.append(1))
    background.call_later(0.15, lambda: seen.append(3)).cancel()
    background.call_later(0.05, lambda: seen.append(1 // 0))
    assert done.wait(10)
    assert seen == [1, 2]
