"""Plays the cases of ../../vectors/http with Starlette and with Flask on wsgiref."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import flask
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from fencepost import asgi, wsgi
from fencepost._fence import Memory, Stale

FOLDER = Path(os.environ.get("VECTORS") or Path(__file__).parents[2] / "vectors")
CASES: List[Dict[str, Any]] = json.loads((FOLDER / "http" / "fence.json").read_text())
METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE"]

Send = Callable[[httpx.Request], httpx.Response]


class Seen:
    """What a case sees besides answers."""

    def __init__(self) -> None:
        self.ran = 0
        self.stale: List[Stale] = []

    def options(self, case: Dict[str, Any], path: Callable[[Any], str]) -> Dict[str, Any]:
        options: Dict[str, Any] = {
            "raise_fence": failing if case.get("fails") else Memory(),
            "optional": case.get("optional", False),
            "on_stale": lambda _request, stale: self.stale.append(stale),
        }
        if case.get("resource") == "account":
            options["resource"] = lambda request: account(path(request))
        return options


def account(path: str) -> Optional[str]:
    _, accounts, *rest = path.split("/")
    return rest[0] if accounts == "accounts" else None


def failing(resource: str, fence: int) -> int:
    raise OSError("the store does not answer")


@contextmanager
def starlette(case: Dict[str, Any], seen: Seen) -> Iterator[Send]:
    async def handle(request: Request) -> PlainTextResponse:
        seen.ran += 1
        return PlainTextResponse(str(request.state.fence or 0))

    app = Starlette(routes=[Route("/{path:path}", handle, methods=METHODS)])
    options = seen.options(case, lambda scope: str(scope["path"]))
    raises = options.pop("raise_fence")

    async def raise_fence(resource: str, fence: int) -> int:
        return int(raises(resource, fence))

    app.add_middleware(asgi.Guard, raise_fence=raise_fence, **options)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    async def send(request: httpx.Request) -> httpx.Response:
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.send(request)

    yield lambda request: asyncio.run(send(request))


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(app: Any) -> Iterator[Send]:
    server: WSGIServer = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with httpx.Client(timeout=30, trust_env=False) as client:

            def send(request: httpx.Request) -> httpx.Response:
                request.url = request.url.copy_with(host="127.0.0.1", port=server.server_port)
                return client.send(request)

            yield send
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def flask_app(case: Dict[str, Any], seen: Seen) -> Iterator[Send]:
    app = flask.Flask(__name__)

    @app.route("/<path:path>", methods=METHODS)
    def handle(path: str) -> str:
        seen.ran += 1
        return str(flask.request.environ["fencepost.fence"] or 0)

    options = seen.options(case, lambda environ: str(environ["PATH_INFO"]))
    app.wsgi_app = wsgi.Guard(app.wsgi_app, **options)  # type: ignore[method-assign]
    with serve(app) as send:
        yield send


@pytest.mark.parametrize("framework", [starlette, flask_app])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: Dict[str, Any], framework: Any) -> None:
    seen = Seen()
    with framework(case, seen) as send:
        for want in case["requests"]:
            seen.ran, seen.stale = 0, []
            method, path = want["send"].split(" ")
            headers = [("Fence", text) for text in want.get("fence", [])]
            request = httpx.Request(method, "http://service" + path, headers=headers)
            answer = send(request)
            check(want, answer, seen)


SPELLINGS = ["/accounts/7/", "//accounts/7", "/accounts//7", "/%61ccounts/7", "/accounts%2F7"]


def old_writes_that_pass(send: Send, paths: List[str]) -> List[str]:
    """Writes with fence 9, then to the same account, by each path, with fence 8."""
    url = "http://service"
    assert send(httpx.Request("PUT", url + "/accounts/7", headers={"Fence": "9"})).text == "7"
    old = [httpx.Request("PUT", url + path, headers={"Fence": "8"}) for path in paths]
    return [str(request.url) for request in old if send(request).text == "7"]


def test_no_spelling_of_a_path_passes_the_guard_of_wsgi() -> None:
    app = flask.Flask(__name__)
    app.url_map.strict_slashes = False

    @app.put("/accounts/<account>")
    def handle(account: str) -> str:
        return account

    app.wsgi_app = wsgi.Guard(app.wsgi_app, Memory())  # type: ignore[method-assign]
    transport = httpx.WSGITransport(app)
    with httpx.Client(transport=transport) as client:
        assert old_writes_that_pass(client.send, SPELLINGS) == []
    for name, path in (("SCRIPT_NAME", "/accounts"), ("PATH_INFO", "http://service/accounts/7")):
        environ = {"SCRIPT_NAME": "", "PATH_INFO": "/7", name: path}
        assert wsgi._path(environ) == "/accounts/7"
    assert wsgi._path({"PATH_INFO": "/accounts/\xc3\xbc"}) == "/accounts/ü"


def test_no_spelling_of_a_path_passes_the_guard_of_asgi() -> None:
    async def handle(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.path_params["account"].rstrip("/"))

    app = Starlette(routes=[Route("/accounts/{account:path}", handle, methods=["PUT"])])
    app.add_middleware(asgi.Guard, raise_fence=Memory())
    transport = httpx.ASGITransport(app, root_path="/api")

    def send(request: httpx.Request) -> httpx.Response:
        async def sent() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport) as client:
                return await client.send(request)

        return asyncio.run(sent())

    assert old_writes_that_pass(send, [*SPELLINGS, "/api/accounts/7", "/api/accounts/7/"]) == []
    assert asgi._path({"path": "http://service/accounts/7"}) == "/accounts/7"


def check(want: Dict[str, Any], answer: httpx.Response, seen: Seen) -> None:
    at = f"{want}: {answer.status_code} {answer.text}"
    if want["status"] == 500:
        assert answer.status_code >= 500, at
    else:
        assert answer.status_code == want["status"], at
    assert seen.ran == (want["status"] == 200), at
    if "handler" in want:
        assert answer.text == str(want["handler"]), at
    if "code" in want:
        assert answer.headers["content-type"] == "application/problem+json", at
        problem = answer.json()
        assert (problem["status"], problem["code"]) == (want["status"], want["code"]), at
        assert problem.get("fence_presented") == want.get("presented"), at
        assert problem.get("fence_known") == want.get("known"), at
    stale = [(s.presented, s.known) for s in seen.stale]
    assert stale == ([(want["presented"], want["known"])] if "known" in want else []), at


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 8
