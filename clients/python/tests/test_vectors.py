"""Plays clients/vectors with both clients. The format: ../../vectors/README.md."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import os
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Tuple
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from fencepost import AsyncFencepost, Event, Fencepost, FencepostError, LockLost
from fencepost._events import verify_at
from world import Actor, Loop, Over, World

FOLDER = Path(os.environ.get("VECTORS") or Path(__file__).parents[2] / "vectors")
BODIES = json.loads((FOLDER / "bodies.json").read_text())
VECTORS = [
    vector
    for file in sorted(FOLDER.glob("*.json"))
    if file.name != "bodies.json"
    for vector in json.loads(file.read_text())
]
SLACK = 0.05
HOUR = 3600.0

OPTIONS = (
    *("ttl", "wait", "mode", "limit", "holder", "metadata", "request_release", "margin"),
    *("at_least", "permits", "only_newest"),
)
FIELDS = {
    "vector": {"name", "about", "config", "steps", "server", "until"},
    "config": {"urls", "retry_for", "clock", "traceparent"},
    "step": {
        *OPTIONS,
        *(
            "at",
            "do",
            "as",
            "of",
            "name",
            "claims",
            "any",
            "callback_url",
            "event",
            "prefix",
            "state",
        ),
        *("types", "locks", "after", "fence_presented", "fence_known", "resource", "secrets"),
        *("headers", "payload", "seconds", "now", "result", "lost", "release_requested", "token"),
    },
    "result": {
        *("at", "error", "fence", "fences", "names", "events", "terms", "waiting", "type", "id"),
    },
    "lost": {"at", "reason", "revoke_reason"},
    "piece": {"after", "text"},
    "exchange": {
        *("at", "during", "least", "request", "key", "token", "headers", "send", "delay"),
        *("status", "answer", "body", "fault", "given_up", "stream"),
    },
}


class Cancel(BaseException):
    """Ends a call of a thread, as a signal does."""


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_vector(vector: Dict[str, Any], kind: str) -> None:
    logging.getLogger("fencepost").propagate = False
    vector = copy.deepcopy(vector)
    faults = (Threads if kind == "threads" else Asyncio)(vector).play()
    assert not faults, "\n".join(faults)


def test_there_are_enough_vectors() -> None:
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS) >= 40


def known(kind: str, value: Dict[str, Any]) -> Dict[str, Any]:
    unknown = value.keys() - FIELDS[kind]
    assert not unknown, f"a {kind} has the unknown fields {unknown}"
    return value


def include(bounds: Any, at: float) -> bool:
    if bounds is None:
        return True
    low, high = bounds if isinstance(bounds, list) else (bounds, bounds)
    return bool(low - SLACK <= at <= high + SLACK)


class Run:
    """Plays one vector in virtual time."""

    def __init__(self, vector: Dict[str, Any]) -> None:
        self.vector = known("vector", vector)
        self.config = known("config", vector.get("config", {}))
        for step in vector["steps"]:
            for part in ("result", "lost"):
                known(part, step.get(part, {}))
        for exchange in vector["server"]:
            for piece in exchange.get("stream", ()):
                known("piece", piece)
        self.server = [dict(known("exchange", e), answered=0) for e in vector["server"]]
        self.next = 0
        self.faults: List[str] = []
        self.bound: Dict[str, str] = {}  # what $names stand for
        self.held: Dict[str, Any] = {}
        self.pending: Dict[str, Any] = {}
        self.watched: Dict[str, Dict[str, Any]] = {}  # steps, by the names of their locks
        self.asked: Dict[str, List[Dict[str, Any]]] = {}
        self.over = False
        self.world = World()
        self.world.has_boot = self.config.get("clock", "boot") == "boot"
        self.world.settled = self.look_for_losses
        self.setup()

    def setup(self) -> None:
        raise NotImplementedError

    def start(self, step: Dict[str, Any]) -> None:
        raise NotImplementedError

    def cancel(self, name: str) -> None:
        raise NotImplementedError

    def resign(self, name: str) -> None:
        raise NotImplementedError

    def make(self, kind: Callable[..., Any], connect: Callable[[str], Any]) -> Any:
        client = kind(
            self.config.get("urls", "http://a"),
            "T",
            retry_for=self.config.get("retry_for", 30),
            propagate=self.propagate,
            _system=self.world,
        )
        client.wire._connect = connect
        client.wire.reset()
        return client

    def propagate(self, headers: Dict[str, str]) -> None:
        if "traceparent" in self.config:
            headers["traceparent"] = self.config["traceparent"]

    def fault(self, text: str) -> None:
        if not self.over:
            self.faults.append(f"{self.world.now:.3f}: {text}")

    def play(self) -> List[str]:
        try:
            for step in self.vector["steps"]:
                self.world.run_until(step["at"])
                self.do(known("step", step))
                self.world.settle()
            self.world.run_until(self.vector["until"])
            for exchange in self.server[self.next :]:
                if exchange["answered"] < max(1, exchange.get("least", 1)):
                    self.fault(f"the request did not come: {exchange['request']}")
        finally:
            self.over = True
            self.stop()
            self.world.end()
        for step in self.vector["steps"]:
            self.ended(step)
        return self.faults

    def stop(self) -> None:
        """Ends what still runs."""

    def ended(self, step: Dict[str, Any]) -> None:
        """Compares what has to be known at the end."""
        result = step.get("result")
        goes_on = result is None or ("at" not in result and "error" not in result)
        name = f"{step['do']} {step.get('as') or step.get('of') or ''}"
        if not goes_on and not step.get("_done"):
            self.faults.append(f"{name} does not end")
        if "lost" in step and not step.get("_lost"):
            self.faults.append(f"{name} is not lost")
        if result and "events" in result and step.get("_events", []) != result["events"]:
            self.faults.append(f"{name} gives {step.get('_events')}, want {result['events']}")
        if step.get("release_requested", []) != self.asked.get(step.get("as", ""), []):
            self.faults.append(f"{name} was asked by {self.asked}")

    def do(self, step: Dict[str, Any]) -> None:
        do = step["do"]
        if do == "pause":
            self.world.now += step["seconds"]
        elif do == "suspend":
            self.world.slept += step["seconds"]
        elif do == "wall":
            self.world.set += step["seconds"]
        elif do == "cancel":
            self.cancel(step["of"])
        elif do == "resign":
            self.resign(step["of"])
        else:
            self.start(step)

    def options(self, step: Dict[str, Any]) -> Dict[str, Any]:
        options = {name: step[name] for name in OPTIONS if name in step}

        def asked(request: Any) -> None:
            seen, want = self.asked.setdefault(step["as"], []), step.get("release_requested", [])
            at: Any = self.world.now
            if len(seen) < len(want) and include(want[len(seen)]["at"], at):
                at = want[len(seen)]["at"]
            seen.append({"at": at, "by": request.by})

        return {**options, "on_release_requested": asked}

    def got(self, step: Dict[str, Any], held: Any) -> Dict[str, Any]:
        self.held[step["as"]] = held
        self.watched[step["as"]] = step
        return {"fence": held.fence, "fences": dict(held.fences)}

    def look_for_losses(self) -> None:
        for name, step in list(self.watched.items()):
            if self.held[name].lost.is_set() and not self.over:
                del self.watched[name]
                self.lost(name, step, self.held[name])

    def lost(self, name: str, step: Dict[str, Any], held: Any) -> None:
        want = step.get("lost")
        try:
            held.check()
        except LockLost as error:
            if error.reason == "closed" and want is None:
                return
            step["_lost"] = True
            reasons = error.reason, error.revoke_reason
            if (
                want is None
                or not include(want["at"], self.world.now)
                or reasons != (want["reason"], want.get("revoke_reason", ""))
            ):
                self.fault(f"{name} is lost: {reasons}, want {want}")

    def event(self, step: Dict[str, Any], event: Event) -> None:
        if self.over:
            return
        seen, want = step.setdefault("_events", []), step["result"]["events"]
        at: Any = self.world.now
        if len(seen) < len(want) and include(want[len(seen)]["at"], at):
            at = want[len(seen)]["at"]
        seen.append({"at": at, "id": event.id, "type": event.type})

    def term(self, want: Dict[str, Any], held: Any, begun: float) -> Dict[str, Any]:
        terms = want.get("terms", [])
        for term in terms:
            times = include(term["at"], begun) and include(term["ended"], self.world.now)
            if term["fence"] == held.fence and times:
                return dict(term)
        return {"fence": held.fence, "at": begun, "ended": self.world.now}

    def compare(
        self, step: Dict[str, Any], got: Dict[str, Any], error: Optional[BaseException]
    ) -> None:
        """Compares how a call ended with what is said of it."""
        if self.over:
            return
        step["_done"] = True
        name = f"{step['do']} {step.get('as') or step.get('of') or ''}"
        want = step.get("result")
        if want is None:
            self.fault(f"{name} ends: {error!r}")
            return
        if not include(want.get("at"), self.world.now):
            self.fault(f"{name} ends with {error!r}, want it at {want.get('at')}")
        if (error is None) != ("error" not in want):
            self.fault(f"{name} ends with {error!r}, want {want.get('error')}")
        for field, value in want.get("error", {}).items():
            if described(error).get(field) != value:
                self.fault(f"{name} has {field}={described(error).get(field)}, want {value}")
        got = {"terms": step.get("_terms"), **got}
        for field, value in want.items():
            if field not in ("at", "error", "events") and got.get(field) != value:
                self.fault(f"{name} gives {field}={got.get(field)}, want {value}")

    # The server.

    def take(self, request: httpx.Request) -> Optional[Dict[str, Any]]:
        """Finds the exchange of a request, and compares the request with it."""
        if self.over:
            raise Over
        at = self.world.now
        told = f"{request.method} {request.url}"
        exchange = self.server[self.next] if self.next < len(self.server) else None
        if exchange and "during" in exchange and at > exchange["during"][1]:
            if exchange["answered"] < exchange.get("least", 1):
                self.fault(f"{exchange['answered']} requests came: {exchange['request']}")
            self.next += 1
            exchange = self.server[self.next] if self.next < len(self.server) else None
        if exchange is None:
            self.fault(f"unexpected request {told}")
            return None
        exchange["answered"] += 1
        if "during" not in exchange:
            self.next += 1
        bounds = exchange.get("during", exchange.get("at"))
        if not same_request(exchange["request"], told) or not include(bounds, at):
            self.fault(f"request {told}, want {exchange['request']} at {bounds}")
        self.compare_request(request, exchange)
        return exchange

    def compare_request(self, request: httpx.Request, exchange: Dict[str, Any]) -> None:
        content = request.read()
        sent = json.loads(content) if content else None
        want = {"authorization": "Bearer T", "last-event-id": "", "traceparent": ""}
        want["content-type"] = "" if sent is None else "application/json"
        want["idempotency-key"] = exchange.get("key", "")
        want["lock-token"] = exchange.get("token", "")
        want.update({k.lower(): v for k, v in exchange.get("headers", {}).items()})
        for name, value in want.items():
            if not self.matches(value, request.headers.get(name, "")):
                self.fault(f"{exchange['request']} has {name} {request.headers.get(name)!r}")
        if not self.matches(exchange.get("send"), sent):
            self.fault(f"{exchange['request']} sends {sent}, want {exchange.get('send')}")

    def matches(self, want: Any, got: Any) -> bool:
        if isinstance(want, str) and want.startswith("$") and isinstance(got, str):
            if want not in self.bound and got and got not in self.bound.values():
                self.bound[want] = got
            return self.bound.get(want) == got
        if isinstance(want, dict) and isinstance(got, dict):
            return want.keys() == got.keys() and all(self.matches(want[k], got[k]) for k in want)
        if isinstance(want, list) and isinstance(got, list):
            return len(want) == len(got) and all(map(self.matches, want, got))
        return bool(want == got)

    def script(self, request: httpx.Request) -> Script:
        return Script(self, request, self.take(request))


class Script:
    """What becomes of one request: a wait for the answer, and then its pieces."""

    def __init__(
        self, run: Run, request: httpx.Request, exchange: Optional[Dict[str, Any]]
    ) -> None:
        self.run = run
        self.exchange = exchange or {"fault": "hang", "request": str(request.url)}
        self.timeout: float = request.extensions["timeout"]["read"]
        hang = self.exchange.get("fault") == "hang"
        self.delay = HOUR if hang else self.exchange.get("delay", 0)

    def given_up(self) -> None:
        want = self.exchange.get("given_up")
        expected = want is not None or self.exchange.get("fault") == "hang"
        if not expected or not include(want, self.run.world.now):
            self.run.fault(f"given up, want {want}: {self.exchange['request']}")

    def head(self) -> None:
        """Is called when the answer is due."""
        if "given_up" in self.exchange:
            self.run.fault(f"not given up: {self.exchange['request']}")
        if self.exchange.get("fault") == "cut":
            raise httpx.ReadError("connection reset")

    def response(self, stream: Any) -> httpx.Response:
        headers = self.exchange.get("answer", {})
        return httpx.Response(self.exchange["status"], headers=headers, stream=stream)

    def pieces(self) -> List[Tuple[float, Optional[bytes]]]:
        """Waits and pieces of the body; None cuts it."""
        cut = self.exchange.get("fault") == "cut-body"
        end: List[Tuple[float, Optional[bytes]]] = [(0, None)] if cut else []
        if "stream" in self.exchange:
            chunks = self.exchange["stream"]
            return [(c.get("after", 0), c["text"].encode()) for c in chunks] + end
        body = self.exchange.get("body", {})
        body = BODIES[body] if isinstance(body, str) else body
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        return [(0, text[: len(text) // 2] if cut else text), *end]


def whole(text: Optional[bytes]) -> bytes:
    if text is None:
        raise httpx.RemoteProtocolError("the body is cut")
    return text


def same_request(want: str, got: str) -> bool:
    a, b = (urlsplit(text.replace("//*", "//a")) for text in (want, got))
    same = a._replace(query="") == b._replace(query="")
    return same and sorted(parse_qsl(a.query)) == sorted(parse_qsl(b.query))


def described(error: Optional[BaseException]) -> Dict[str, Any]:
    if isinstance(error, (Cancel, asyncio.CancelledError)):
        return {"code": "cancelled"}
    if not isinstance(error, FencepostError):
        return {}
    fields = {**error.problem, **vars(error)}
    if isinstance(error, LockLost):
        fields["reason"] = error.reason
    fields["holder"] = (error.problem.get("holders") or [{}])[0].get("holder")
    return fields


class Threads(Run):
    """Plays a vector with the client for threads: each call has a thread."""

    def setup(self) -> None:
        self.calls: Dict[str, Actor] = {}
        self.resigns: Dict[str, Actor] = {}
        self.client: Fencepost = self.make(Fencepost, lambda _base: FakeLane(self))

    def start(self, step: Dict[str, Any]) -> None:
        def work() -> None:
            try:
                self.compare(step, self.call(step), None)
            except (Exception, Cancel) as error:
                self.compare(step, {}, error)

        self.calls[step.get("as", "")] = self.world.begin(work)

    def cancel(self, name: str) -> None:
        self.world.wake(self.calls[name], Cancel())

    def resign(self, name: str) -> None:
        self.world.wake(self.calls[name])

    def call(self, step: Dict[str, Any]) -> Dict[str, Any]:
        client, do = self.client, step["do"]
        if do in ("lock", "try_lock"):
            return self.got(step, getattr(client, do)(step["name"], **self.options(step)))
        if do in ("lock_set", "try_lock_set"):
            return self.got(step, getattr(client, do)(step["claims"], **self.options(step)))
        if do in ("lock_any", "try_lock_any"):
            acquire = getattr(client, do)
            return self.got(step, acquire(step["claims"], step["any"], **self.options(step)))
        if do == "async":
            pending = client.async_acquire(
                step["name"], step.get("callback_url"), **self.options(step)
            )
            self.pending[step["as"]] = pending
            return {"id": pending.id}
        if do == "wait":
            return self.got(step, self.pending[step["of"]].wait())
        if do == "leave":
            self.pending[step["of"]].leave()
        elif do == "claim":
            return self.got(step, client.claim(Event(**BODIES[step["event"]])))
        elif do == "adopt":
            return self.got(step, client.adopt(step["name"], step["token"], **self.options(step)))
        elif do in ("release", "check"):
            getattr(self.held[step["of"]], do)()
        elif do == "close":
            client.close()
        elif do == "lead":
            return self.lead(step)
        elif do == "look":
            return dict(client.look(step["name"]))
        elif do == "list":
            locks = client.list(step.get("prefix", ""), step.get("state", ""))
            return {"names": [lock["name"] for lock in locks]}
        elif do == "events":
            for event in client.events(*filters(step)):
                self.event(step, event)
        elif do == "verify":
            return verified(step)
        else:
            assert do == "stale_write", do
            client.stale_write(**reported(step))
        return {}

    def lead(self, step: Dict[str, Any]) -> Dict[str, Any]:
        terms = step["_terms"] = []

        def work(held: Any) -> None:
            begun = self.world.now
            actor = self.world.local.actor
            held._on_lost = lambda: self.world.wake(actor)
            with contextlib.suppress(Cancel):  # the work heeds it, and ends
                self.world.wait(None)
            terms.append(self.term(step["result"], held, begun))

        self.client.lead(step["name"], work, **self.options(step))
        return {"terms": terms}


def filters(step: Dict[str, Any]) -> Tuple[List[str], List[str], str]:
    return step.get("types", []), step.get("locks", []), step.get("after", "")


def verified(step: Dict[str, Any]) -> Dict[str, Any]:
    event = verify_at(step["now"], step["headers"], step["payload"].encode(), step["secrets"])
    return vars(event)


def reported(step: Dict[str, Any]) -> Dict[str, Any]:
    return {name: step[name] for name in ("name", "fence_presented", "fence_known", "resource")}


class FakeLane:
    """A connection to the script, for threads."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.actor: Optional[Actor] = None

    def send(self, request: httpx.Request) -> httpx.Response:
        script = self.run.script(request)
        self.actor = self.run.world.local.actor
        late = script.timeout < script.delay
        try:
            self.run.world.wait(min(script.timeout, script.delay))
            if late:
                raise httpx.ReadTimeout("too late")
        except BaseException:
            script.given_up()
            raise
        finally:
            self.actor = None
        script.head()
        return script.response(FakeStream(script))

    def abort(self) -> None:
        if self.actor is not None:
            self.run.world.wake(self.actor, httpx.ReadError("aborted"))

    def close(self) -> None:
        pass


class FakeStream(httpx.SyncByteStream):
    def __init__(self, script: Script) -> None:
        self.script = script

    def __iter__(self) -> Iterator[bytes]:
        for after, text in self.script.pieces():
            if after:
                self.script.run.world.wait(min(after, self.script.timeout))
            if after > self.script.timeout:
                raise httpx.ReadTimeout("too late")
            yield whole(text)


class Asyncio(Run):
    """Plays a vector with the client for asyncio: each call has a task.

    What the client does in the background is done in threads here, too.
    """

    def setup(self) -> None:
        self.tasks: Dict[str, Any] = {}
        self.works: Dict[str, Any] = {}
        self.loop = Loop(self.world)
        self.client: AsyncFencepost = self.make(AsyncFencepost, lambda _base: FakeLane(self))
        self.client.wire._connect_async = lambda _base: FakeAsyncLane(self)
        self.client.wire.reset()
        self.loop.start()

    def stop(self) -> None:
        async def finish() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.loop.shutdown_asyncgens()
            self.loop.stop()

        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(finish()))
        self.world.run_until(self.world.now + 60)
        self.loop.close()

    def start(self, step: Dict[str, Any]) -> None:
        def begin() -> None:
            self.tasks[step.get("as", "")] = self.loop.create_task(self.work(step))

        self.loop.call_soon_threadsafe(begin)

    def cancel(self, name: str) -> None:
        self.loop.call_soon_threadsafe(self.tasks[name].cancel)

    def resign(self, name: str) -> None:
        self.loop.call_soon_threadsafe(self.works[name].set)

    async def work(self, step: Dict[str, Any]) -> None:
        try:
            got = await self.call(step)
        except (Exception, asyncio.CancelledError) as error:
            self.compare(step, {}, error)
            return
        self.compare(step, got, None)
        if step.get("as") in self.held:
            await self.follow(step, self.held[step["as"]])

    async def follow(self, step: Dict[str, Any], held: Any) -> None:
        """The work under the lock ends by its cancel alone, and raises that the lock is lost."""
        try:
            async with held:
                await asyncio.Event().wait()
        except LockLost as error:
            want = step.get("lost")
            if want and (error.reason != want["reason"] or not include(want["at"], self.world.now)):
                self.fault(f"the work ends with {error!r}")
        except BaseException as error:
            self.fault(f"the work ends with {error!r}")
            raise

    async def call(self, step: Dict[str, Any]) -> Dict[str, Any]:
        client, do = self.client, step["do"]
        if do in ("lock", "try_lock"):
            return self.got(step, await getattr(client, do)(step["name"], **self.options(step)))
        if do in ("lock_set", "try_lock_set"):
            return self.got(step, await getattr(client, do)(step["claims"], **self.options(step)))
        if do in ("lock_any", "try_lock_any"):
            acquire = getattr(client, do)
            return self.got(step, await acquire(step["claims"], step["any"], **self.options(step)))
        if do == "async":
            pending = await client.async_acquire(
                step["name"], step.get("callback_url"), **self.options(step)
            )
            self.pending[step["as"]] = pending
            return {"id": pending.id}
        if do == "wait":
            return self.got(step, await self.pending[step["of"]].wait())
        if do == "leave":
            await self.pending[step["of"]].leave()
        elif do == "claim":
            return self.got(step, await client.claim(Event(**BODIES[step["event"]])))
        elif do == "adopt":
            held = client.adopt(step["name"], step["token"], **self.options(step))
            return self.got(step, await held)
        elif do == "release":
            await self.held[step["of"]].release()
        elif do == "check":
            self.held[step["of"]].check()
        elif do == "close":
            await client.close()
        elif do == "lead":
            return await self.lead(step)
        elif do == "look":
            return dict(await client.look(step["name"]))
        elif do == "list":
            locks = client.list(step.get("prefix", ""), step.get("state", ""))
            return {"names": [lock["name"] async for lock in locks]}
        elif do == "events":
            async for event in client.events(*filters(step)):
                self.event(step, event)
        elif do == "verify":
            return verified(step)
        else:
            assert do == "stale_write", do
            await client.stale_write(**reported(step))
        return {}

    async def lead(self, step: Dict[str, Any]) -> Dict[str, Any]:
        terms = step["_terms"] = []
        resign = self.works[step["as"]] = asyncio.Event()

        async def work(held: Any) -> None:
            begun = self.world.now
            try:
                await resign.wait()
            finally:
                terms.append(self.term(step["result"], held, begun))

        try:
            await self.client.lead(step["name"], work, **self.options(step))
        except asyncio.CancelledError:  # asyncio's end of a campaign is a cancel
            if not terms or self.over:
                raise
        return {"terms": terms}


class FakeAsyncLane(httpx.AsyncBaseTransport):
    """A connection to the script, for asyncio."""

    def __init__(self, run: Run) -> None:
        self.run = run

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        script = self.run.script(request)
        late = script.timeout < script.delay
        try:
            await asyncio.sleep(min(script.timeout, script.delay))
            if late:
                raise httpx.ReadTimeout("too late")
        except BaseException:
            script.given_up()
            raise
        script.head()
        return script.response(FakeAsyncStream(script))

    async def aclose(self) -> None:
        pass


class FakeAsyncStream(httpx.AsyncByteStream):
    def __init__(self, script: Script) -> None:
        self.script = script

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for after, text in self.script.pieces():
            if after:
                await asyncio.sleep(min(after, self.script.timeout))
            if after > self.script.timeout:
                raise httpx.ReadTimeout("too late")
            yield whole(text)
