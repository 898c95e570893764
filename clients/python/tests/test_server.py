"""Uses a server, which ../../with-server starts."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.server
import os
import pickle
import queue
import re
import ssl
import subprocess
import sys
import threading
import time
import traceback
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set

import httpx
import pytest

from fencepost import (
    AsyncFencepost,
    Cancelled,
    Event,
    Fencepost,
    FencepostError,
    Forbidden,
    Held,
    LockHeld,
    LockLost,
    LockReleased,
    Superseded,
    WaitTimeout,
    verify_webhook,
)

API = os.environ.get("FENCEPOST_URL", "")
TOKEN = os.environ.get("FENCEPOST_TOKEN", "")
ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(not API, reason="with-server sets FENCEPOST_URL")


@pytest.fixture
def client() -> Iterator[Fencepost]:
    with Fencepost(API, TOKEN) as c:
        yield c


@pytest.fixture
def name() -> str:
    return f"python:{uuid.uuid4().hex}"


def server(method: str, path: str, **more: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {TOKEN}", **more.pop("headers", {})}
    return httpx.request(method, API + path, headers=headers, **more)


def lose(held: Any) -> None:
    """Has the server end the entry: the next renewal learns of it."""
    token = {"Lock-Token": held._entry.token}
    assert server("DELETE", f"/locks/{held.name}", headers=token).status_code == 204


def until(done: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it does not happen"
        threading.Event().wait(0.02)


def child(program: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )


# The program of the README.


def readme() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert found is not None
    assert found.group(1).count("\n") <= 20
    return found.group(1)


def test_the_program_of_the_readme_is_released() -> None:
    program = child(readme().replace("range(60)", "range(1)"))
    out, _ = program.communicate(timeout=30)
    assert program.returncode == 0
    assert re.fullmatch(r"held with the fence \d+\nreleased\n", out)


def test_the_program_of_the_readme_is_renewed_and_loses_the_lock_with_its_server() -> None:
    program = readme().replace("ttl=10", "ttl=2")
    shown = f"import os; print(os.environ['SERVER_PID'])\n{program}"
    starter = str(ROOT.parent / "with-server")
    process = subprocess.Popen(
        [starter, sys.executable, "-u", "-c", shown], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert process.stdout.readline().startswith("held")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)  # longer than the lease
    os.kill(pid, 9)
    begun = time.monotonic()
    said = process.stdout.read()
    assert re.search(
        r"is lost: deadline: no renewal has succeeded for [12]\.\d s, last error: ", said
    )
    assert re.search(r"http://127\.0\.0\.1:\d+: ", said)
    assert time.monotonic() - begun < 5
    process.wait(10)
    process.stdout.close()


# Locks.


def test_a_try_is_refused_and_names_the_holder(client: Fencepost, name: str) -> None:
    with client.lock(name, holder="first"), pytest.raises(LockHeld) as refused:
        client.try_lock(name)
    assert refused.value.problem["holders"][0]["holder"] == "first"
    with client.try_lock(name):
        pass


def test_a_wait_ends(client: Fencepost, name: str) -> None:
    with client.lock(name), pytest.raises(WaitTimeout):
        client.lock(name, wait=0.2)


def test_a_set_is_taken_as_a_whole(client: Fencepost, name: str) -> None:
    with client.lock_set([name, {"name": name + "-b", "mode": "shared"}]) as held:
        assert set(held.fences) == {name, name + "-b"}
        with pytest.raises(LockHeld):
            client.try_lock_set([name + "-c", name])
        with client.try_lock(name + "-b", mode="shared"):
            pass


def test_shared_locks_and_semaphores_have_several_holders(client: Fencepost, name: str) -> None:
    options: Any
    for options in {"mode": "shared"}, {"mode": "semaphore", "limit": 2}:
        first, second = client.lock(name, **options), client.try_lock(name, **options)
        with first, second, pytest.raises(FencepostError) as refused:
            client.try_lock(name)
        assert refused.value.code in ("lock_held", "mode_mismatch")


def test_any_of_a_pool_is_taken(client: Fencepost, name: str) -> None:
    pool = [f"{name}-{i}" for i in (2, 0, 1)]
    with client.lock_any(pool) as first, client.try_lock_any(pool, 2):
        assert first.name == pool[0]
        with pytest.raises(LockHeld):
            client.try_lock_any(pool)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            call = threads.submit(client.lock_any, pool)
            until(lambda: client.look(pool[0])["waiting"] == 1)
            first.release()
            with call.result(30) as next_one:
                assert next_one.fences == {pool[0]: next_one.fence}


def test_60_threads_share_a_pool(client: Fencepost, name: str) -> None:
    pool = [f"{name}-{i}" for i in range(4)]
    fences: Dict[str, List[int]] = {member: [] for member in pool}
    holders: Set[str] = set()

    def work(_: int) -> None:
        with client.lock_any(pool, ttl=30, wait=60) as held:
            ((member, fence),) = held.fences.items()
            assert member not in holders
            holders.add(member)
            fences[member].append(fence)
            threading.Event().wait(0.01)
            holders.remove(member)

    with concurrent.futures.ThreadPoolExecutor(60) as threads:
        list(threads.map(work, range(60)))
    assert sum(map(len, fences.values())) == 60
    assert all(of and of == sorted(set(of)) for of in fences.values())


def test_a_semaphore_has_permits_and_each_entry_a_limit(client: Fencepost, name: str) -> None:
    options: Any = {"mode": "semaphore", "limit": 3}
    with client.lock(name, permits=2, **options):
        with pytest.raises(LockHeld):
            client.try_lock(name, permits=2, **options)
        with client.try_lock(name, **options), client.try_lock(name, mode="semaphore", limit=4):
            pass


def test_only_the_newest_waits(client: Fencepost, name: str) -> None:
    def lock() -> Held:
        return client.lock(name, only_newest=True)

    held = client.lock(name)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        older = threads.submit(lock)
        until(lambda: client.look(name)["waiting"] == 1)
        newer = threads.submit(lock)
        with pytest.raises(Superseded):
            older.result(30)
        held.release()
        newer.result(30).release()


def test_a_lock_is_kept_for_its_least_time(client: Fencepost, name: str) -> None:
    begun = time.monotonic()
    with client.lock(name, at_least=2) as held:
        pass
    with client.lock(name) as later:
        assert time.monotonic() - begun >= 2
        assert later.fence > held.fence


@pytest.mark.parametrize("locks", [1, 300])
def test_300_threads_at_once(client: Fencepost, name: str, locks: int) -> None:
    fences: List[int] = []

    def work(i: int) -> None:
        with client.lock(f"{name}-{i % locks}", ttl=30, wait=60) as held:
            fences.append(held.fence)

    with concurrent.futures.ThreadPoolExecutor(300) as pool:
        list(pool.map(work, range(300)))
    assert len(fences) == 300
    assert locks > 1 or fences == sorted(set(fences))


@pytest.mark.parametrize("locks", [1, 300])
def test_300_tasks_at_once(name: str, locks: int) -> None:
    fences: List[int] = []

    async def main() -> None:
        async with AsyncFencepost(API, TOKEN) as client:

            async def work(i: int) -> None:
                async with client.lock(f"{name}-{i % locks}", ttl=30, wait=60) as held:
                    fences.append(held.fence)

            await asyncio.gather(*map(work, range(300)))

    asyncio.run(main())
    assert len(fences) == 300
    assert locks > 1 or fences == sorted(set(fences))


def test_a_look_and_a_list_show_the_lock(client: Fencepost, name: str) -> None:
    with client.lock(name, holder="me") as held:
        assert client.look(name)["holders"][0]["holder"] == "me"
        assert [lock["name"] for lock in client.list(name)] == [name]
    client.stale_write(name, held.fence, held.fence + 1, "a table")


def test_events_follow_a_lock(client: Fencepost, name: str) -> None:
    seen: queue.Queue[Event] = queue.Queue()

    def follow() -> None:
        with contextlib.suppress(Cancelled):
            for event in client.events(types=["lock.released"], locks=[name]):
                seen.put(event)

    threading.Thread(target=follow, daemon=True).start()

    def released() -> bool:
        client.lock(name).release()
        return not seen.empty()

    until(released)  # the stream begins some time
    event = seen.get()
    assert (event.type, event.data["lock"]) == ("lock.released", name)


def test_a_callback_is_claimed(client: Fencepost, name: str) -> None:
    calls: queue.Queue[Event] = queue.Queue()
    secret = server("POST", "/webhooks/callback-secret/rotate").json()["secret"]

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            calls.put(verify_webhook(dict(self.headers.items()), body, secret))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        first = client.lock(name)
        url = f"http://127.0.0.1:{receiver.server_port}/granted"
        pending = client.async_acquire(name, url, ttl=30, wait=60)
        first.release()
        event = calls.get(timeout=20)
        receiver.shutdown()
    assert event.data["entry"]["id"] == pending.id
    assert event.data["entry"]["token"] not in repr(event)
    with client.claim(event) as held:
        assert held.fence > first.fence


def test_a_leader_is_elected_again_after_a_loss(client: Fencepost, name: str) -> None:
    terms: List[int] = []

    def work(held: Any) -> str:
        terms.append(held.fence)
        if len(terms) == 1:
            lose(held)
            assert held.lost.wait(10)
        return "done"

    assert client.lead(name, work, ttl=2) == "done"
    assert terms == sorted(set(terms)) and len(terms) == 2


# Threads, forks, the end of the program.


def test_any_thread_may_use_a_held_lock(client: Fencepost, name: str) -> None:
    held = client.lock(name)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(held.check).result()
        pool.submit(held.release).result()
    with pytest.raises(LockReleased):
        held.check()


def test_the_work_learns_of_a_loss(client: Fencepost, name: str) -> None:
    with pytest.raises(LockLost), client.lock(name, ttl=2) as held:
        lose(held)
        assert held.lost.wait(10)
    with pytest.raises(ZeroDivisionError), client.lock(name, ttl=2) as held:
        lose(held)
        assert held.lost.wait(10)
        _ = 1 / 0  # the error of the work is not hidden


def test_an_interrupted_wait_leaves_the_queue(client: Fencepost, name: str) -> None:
    program = f"""
import os, signal, threading
from fencepost import Fencepost
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
with Fencepost({API!r}, {TOKEN!r}) as client:
    try:
        client.lock({name!r}, ttl=2, wait=60)
    except KeyboardInterrupt:
        print("interrupted")
"""
    with client.lock(name):
        out, _ = child(program).communicate(timeout=20)
        assert out == "interrupted\n"
        until(lambda: client.look(name)["waiting"] == 0)


def test_close_ends_a_wait_and_leaves_the_queue(client: Fencepost, name: str) -> None:
    other = Fencepost(API, TOKEN)
    with client.lock(name), concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(other.lock, name, wait=60)
        until(lambda: client.look(name)["waiting"] == 1)
        other.close()
        with pytest.raises(Cancelled):
            call.result(10)
        until(lambda: client.look(name)["waiting"] == 0)  # before the lease of the entry ends
    for refused in (other.lock, other.look):
        with pytest.raises(Cancelled):
            refused(name)


def test_close_ends_campaigns_lists_and_events(client: Fencepost, name: str) -> None:
    other = Fencepost(API, TOKEN)
    ended: queue.Queue[BaseException] = queue.Queue()

    def run(call: Callable[[], Any]) -> None:
        try:
            call()
        except FencepostError as error:
            ended.put(error)

    calls = [
        lambda: other.lead(name, lambda held: held.lost.wait(30), ttl=30),
        lambda: other.lead(name, lambda held: held.lost.wait(30), ttl=30),
        lambda: list(other.events(locks=[name])),
    ]
    for call in calls:
        threading.Thread(target=run, args=(call,), daemon=True).start()
    until(lambda: client.look(name).get("waiting") == 1)
    other.close()
    assert {type(ended.get(timeout=10)) for _ in calls} == {Cancelled}


def test_another_process_adopts_a_lock(client: Fencepost, name: str) -> None:
    first = Fencepost(API, TOKEN)
    given = first.lock(name, ttl=2)
    with client.adopt(name, given.token + "\n") as held:
        first.close()
        assert (held.id, held.fence) == (given.id, given.fence)
        assert not held.lost.wait(3)  # longer than the lease
        held.check()
        with pytest.raises(LockHeld):
            client.try_lock(name)
    with pytest.raises(LockLost, match="released"):
        client.adopt(name, given.token)
    with client.lock(name) as held, pytest.raises(Forbidden):
        client.adopt(name, given.token[:-4] + "AAAA")


# Waits and renewals.


@pytest.fixture(params=["http", "https"])
def server_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A server of its own, with the context that trusts it."""
    flags, context = "", None
    if request.param == "https":
        goroot = subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()
        make = Path(goroot) / "src" / "crypto" / "tls" / "generate_cert.go"
        subprocess.check_call(["go", "run", make, "--host", "127.0.0.1"], cwd=tmp_path)
        flags = f"--tls-cert {tmp_path}/cert.pem --tls-key {tmp_path}/key.pem"
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    says = "import os; print(os.environ['FENCEPOST_URL'], os.environ['FENCEPOST_TOKEN']); input()"
    process = subprocess.Popen(
        [str(ROOT.parent / "with-server"), sys.executable, "-u", "-c", says],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SERVER_FLAGS": flags},
    )
    assert process.stdin is not None and process.stdout is not None
    with process:
        url, token = process.stdout.readline().split()
        assert url.startswith(request.param + "://")
        yield url, token, context
        process.stdin.write("\n")


def renewed_twice(held: Any) -> bool:
    """Waits for two renewals, or for the loss of the lock."""
    for _ in range(2):
        since = held._since
        until(lambda since=since: held.is_lost or held._since != since, 60)  # type: ignore[misc]
    return not held.is_lost


def test_a_holder_renews_while_300_threads_wait(server_of: Any, name: str) -> None:
    url, token, context = server_of
    with Fencepost(url, token, verify=context) as client:
        held = client.lock(name, ttl=12)
        with concurrent.futures.ThreadPoolExecutor(300) as pool:
            waits = [pool.submit(client.lock, name, wait=300) for _ in range(300)]
            try:
                until(lambda: client.look(name)["waiting"] == 300, 120)
                assert renewed_twice(held)
            finally:
                client.close()
        assert {type(wait.exception()) for wait in waits} == {Cancelled}


def test_a_holder_renews_while_300_tasks_wait(server_of: Any, name: str) -> None:
    url, token, context = server_of

    async def wait(client: AsyncFencepost) -> None:
        await client.lock(name, wait=300)

    async def main() -> None:
        async with AsyncFencepost(url, token, verify=context) as client:
            held = await client.lock(name, ttl=12)
            waits = [asyncio.ensure_future(wait(client)) for _ in range(300)]
            run_in = asyncio.get_running_loop().run_in_executor
            try:
                await run_in(None, until, lambda: look.look(name)["waiting"] == 300, 120)
                assert await run_in(None, renewed_twice, held)
            finally:
                await client.close()
                ended = await asyncio.gather(*waits, return_exceptions=True)
            assert {type(error) for error in ended} == {Cancelled}

    with Fencepost(url, token, verify=context) as look:
        asyncio.run(main())


def test_a_forked_child_does_not_hold_the_lock(name: str) -> None:
    program = f"""
import os, sys, threading
from fencepost import Fencepost, LockLost
client = Fencepost({API!r}, {TOKEN!r})
held = client.lock({name!r}, ttl=2)
pid = os.fork()
if pid == 0:
    reasons = []
    for call in (held.check, held.release):
        try:
            call()
        except LockLost as lost:
            reasons.append(lost.reason)
    alone = threading.active_count() == 1
    with client.lock({name!r} + "-of-the-child", ttl=2) as other:
        pass
    os._exit(0 if reasons == ["forked", "forked"] and alone else 1)
_, status = os.waitpid(pid, 0)
held.lost.wait(3)
held.check()
print(status)
held.release()
"""
    process = child(program)
    out, _ = process.communicate(timeout=20)
    assert out == "0\n" and process.returncode == 0


def test_the_interpreter_exits_with_locks_held(name: str) -> None:
    program = f"""
import asyncio
from fencepost import AsyncFencepost, Fencepost
held = Fencepost({API!r}, {TOKEN!r}).lock({name!r}, ttl=2)
async def main():
    client = AsyncFencepost({API!r}, {TOKEN!r})
    await client.lock({name!r} + "-2", ttl=2)
    await asyncio.sleep(1)
asyncio.run(main())
"""
    process = child(program)
    process.communicate(timeout=10)
    assert process.returncode == 0


def test_secrets_are_in_no_error_and_no_text(client: Fencepost, name: str) -> None:
    with client.lock(name) as held:
        texts = [repr(client), repr(held), repr(vars(held)["_entry"])]
        token = held.token
    bad: Any = lambda headers: headers.update(a="\n")  # noqa: E731  h11 shows headers in its error
    for wrong in (Fencepost(API, TOKEN, propagate=bad), Fencepost("http://127.0.0.1:1", TOKEN)):
        wrong.retry_for = 0.1
        try:
            wrong.look(name)
        except FencepostError as error:
            texts += [repr(error), traceback.format_exc(), str(pickle.loads(pickle.dumps(error)))]
    assert len(texts) == 9
    assert not any(secret in text for text in texts for secret in (TOKEN, token))


# asyncio.


def run(work: Callable[[AsyncFencepost], Any]) -> Any:
    async def main() -> Any:
        async with AsyncFencepost(API, TOKEN) as client:
            return await work(client)

    return asyncio.run(main())


def test_the_task_is_cancelled_when_the_lock_is_lost(name: str) -> None:
    async def work(client: AsyncFencepost) -> None:
        with pytest.raises(LockLost):
            async with client.lock(name, ttl=2) as held:
                lose(held)
                await asyncio.sleep(30)
        await asyncio.sleep(0)  # nothing of the cancel is left
        task = asyncio.current_task()
        assert sys.version_info < (3, 11) or (task is not None and task.cancelling() == 0)

    run(work)


def test_a_lock_of_asyncio_is_kept_for_its_least_time(name: str) -> None:
    async def work(client: AsyncFencepost) -> None:
        begun = time.monotonic()
        async with client.lock(name, at_least=2) as held:
            pass
        async with client.lock(name) as later:
            assert time.monotonic() - begun >= 2
            assert later.fence > held.fence

    run(work)


def test_a_foreign_cancel_remains_a_cancel(name: str) -> None:
    async def work(client: AsyncFencepost) -> None:
        entered = asyncio.Event()

        async def hold() -> None:
            async with client.lock(name):
                entered.set()
                await asyncio.sleep(30)

        task = asyncio.ensure_future(hold())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with client.try_lock(name):  # it was released
            pass
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(hold(), 0.5)

    run(work)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout is of 3.11")
def test_timeouts_around_and_in_the_block(name: str) -> None:
    async def work(client: AsyncFencepost) -> None:
        timeout: Any = getattr(asyncio, "timeout")  # noqa: B009
        with pytest.raises(TimeoutError):
            async with timeout(0.5):
                async with client.lock(name):
                    await asyncio.sleep(30)
        with pytest.raises(LockLost):
            async with timeout(20):
                async with client.lock(name, ttl=2) as held, timeout(10):
                    lose(held)
                    await asyncio.sleep(30)
        with pytest.raises(TimeoutError):  # both at once: the other cancel remains one
            async with timeout(None) as outer:
                async with client.lock(name, ttl=2) as held:
                    lose(held)
                    await held_lost_without_a_cancel(held)
                    outer.reschedule(0)
                    held._stop()
                    await asyncio.sleep(30)

    async def held_lost_without_a_cancel(held: Any) -> None:
        task, held._task = held._task, None
        await held.lost.wait()
        held._task = task

    run(work)


@pytest.mark.parametrize("ticks", [1, 2, 3])
def test_close_waits_for_a_release_that_was_cancelled(name: str, ticks: int) -> None:
    async def work(client: AsyncFencepost) -> None:
        held = await client.lock(name, ttl=30)
        task = asyncio.ensure_future(held.release())
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()

    run(work)  # closes the client, and ends the loop
    with Fencepost(API, TOKEN) as client:
        client.try_lock(name).release()


def test_a_cancelled_wait_is_not_in_the_way(client: Fencepost, name: str) -> None:
    async def work(other: AsyncFencepost) -> None:
        async def wait() -> None:
            await other.lock(name)

        task = asyncio.ensure_future(wait())
        await asyncio.get_running_loop().run_in_executor(None, until, waits)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.release()
        async with other.lock(name, wait=10) as next_one:
            assert next_one.fence > held.fence

    def waits() -> bool:
        return client.look(name)["waiting"] == 1

    held = client.lock(name)
    begun = time.monotonic()
    run(work)
    assert time.monotonic() - begun < 5


def test_a_blocked_event_loop_keeps_its_lock(name: str) -> None:
    async def work(client: AsyncFencepost) -> None:
        async with client.lock(name, ttl=2) as held:
            threading.Event().wait(3)
            held.check()

    run(work)


def test_a_client_is_of_one_event_loop(name: str) -> None:
    client = AsyncFencepost(API, TOKEN)

    async def first() -> None:
        async with client:
            await client.look(name)

    async def second() -> None:
        await client.look(name)

    asyncio.run(first())
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(second())


def test_a_leader_in_asyncio_is_elected_again_after_a_loss(name: str) -> None:
    terms: List[int] = []

    async def lead(held: Any) -> str:
        terms.append(held.fence)
        if len(terms) == 1:
            lose(held)
            await asyncio.sleep(30)
        return "done"

    assert run(lambda client: client.lead(name, lead, ttl=2)) == "done"
    assert terms == sorted(set(terms)) and len(terms) == 2


def test_events_in_asyncio_end_with_their_task(name: str) -> None:
    async def work(client: AsyncFencepost) -> None:
        seen = asyncio.Event()

        async def follow() -> None:
            async for event in client.events(locks=[name]):
                assert event.data["lock"] == name
                seen.set()

        task = asyncio.ensure_future(follow())
        while not seen.is_set():
            async with client.lock(name):
                await asyncio.sleep(0.05)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(lambda client: asyncio.wait_for(work(client), 20))


def test_errors_have_a_code_and_a_request_id(client: Fencepost) -> None:
    with pytest.raises(FencepostError) as refused:
        client.lock("no name!")
    assert refused.value.code == "invalid_name"
    assert refused.value.request_id in str(refused.value)
