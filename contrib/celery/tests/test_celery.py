"""Two beats and four workers, on a real broker and server; they are killed and stopped."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from app import app, redis
from fencepost import NotFound

HERE = os.path.dirname(__file__)


def until(condition):
    """Polls until the condition is true, and returns it."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("a condition is not true within a minute")


@pytest.fixture
def start(tmp_path):
    """Starts commands of Celery, and kills them with their children after the test."""
    redis.flushall()
    groups = []

    def begin(*args):
        log = (tmp_path / f"{len(groups)}.log").open("w")
        command = [sys.executable, "-m", "celery", "-A", "app", *args]
        process = subprocess.Popen(
            command, cwd=HERE, stdout=log, stderr=log, start_new_session=True
        )
        groups.append((process, log))
        return process

    yield begin
    for process, log in groups:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        log.close()
        print(Path(log.name).read_text())


def fences(name):
    return [int(fence) for fence in redis.lrange(name, 0, -1)]


def late(numbers):
    """How many are of an earlier holder than one before them."""
    return sum(number < max(numbers[:i], default=0) for i, number in enumerate(numbers))


def holder():
    try:
        holders = app.fencepost.look("celery:beat")["holders"]
    except NotFound:
        return None
    return int(holders[0]["metadata"]["pid"]) if holders else None


def waiters():
    return len(app.fencepost.look("celery:beat")["waiters"])


def test_one_beat_at_a_time(start, tmp_path):
    start("worker", "-P", "solo", "-Q", "beat")

    def beat(name):
        return start("beat", "-S", "app:Beat", "-s", str(tmp_path / name))

    beats = {process.pid: process for process in (beat("one"), beat("two"))}

    def leads(but):
        """Waits until another beat has sent three tasks, and returns its process id."""
        pid = until(lambda: (found := holder()) and found != but and found)
        seen = set(fences("ticks"))
        until(lambda: [f not in seen for f in fences("ticks")].count(True) > 2)
        return pid

    first = until(holder)
    until(lambda: len(fences("ticks")) > 2)
    until(waiters)
    beats[first].kill()
    second = leads(first)

    third = beat("three")
    until(waiters)
    os.kill(second, signal.SIGSTOP)
    assert leads(second) == third.pid
    os.kill(second, signal.SIGCONT)
    until(waiters)  # it has noticed, and waits again

    third.terminate()
    third.wait()
    until(lambda: holder() == second)
    assert late(fences("ticks")) <= 1  # one may have been on its way when the beat was stopped
    assert len(set(fences("ticks"))) >= 3


def test_a_task_does_not_overlap_with_itself(start):
    for i in range(4):
        start("worker", "-c", "2", "-n", f"w{i}")
    for i in range(14):
        app.send_task("app.work", kwargs={"endless": i in (4, 8)})

    def endless(i):
        """Waits for the run number i that has no end, and returns its process and its fence."""
        return map(int, until(lambda: redis.lindex("endless", i)).split())

    pid, _ = endless(0)
    os.kill(pid, signal.SIGKILL)
    pid, stopped = endless(1)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: fences("steps")[-1] > stopped)
    os.kill(pid, signal.SIGCONT)
    until(lambda: redis.llen("failed") and redis.llen("done") == 12)
    assert redis.lrange("failed", 0, -1) == [b"SoftTimeLimitExceeded"]
    # The resource would refuse the steps of the one that was stopped, as it went on.
    assert late([fence for fence in fences("steps") if fence != stopped]) == 0


def test_a_run_is_left_out_while_another_one_runs(start):
    for i in range(4):
        start("worker", "-c", "2", "-n", f"w{i}")
    app.send_task("app.once")
    until(lambda: redis.llen("runs"))
    for _ in range(20):
        app.send_task("app.once")
    for _ in range(8):
        app.send_task("app.after")
    until(lambda: redis.llen("after") == 8)
    assert redis.llen("runs") == 1
    redis.rpush("end", 1)
