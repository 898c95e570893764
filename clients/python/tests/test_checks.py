"""What can never work fails at once, and what fails says why."""

from __future__ import annotations

import asyncio
import datetime
import http.server
import logging
import pydoc
import socket
import threading
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List

import pytest

from fencepost import AsyncFencepost, Fencepost, FencepostError, InvalidRequest, NoAnswer
from fencepost._wire import checked_token


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers a look, and remembers what was asked."""

    seen: List[str]

    def do_GET(self) -> None:
        self.seen.append(f"{self.path} {self.headers['Authorization']}")
        body = b'{"name": "a"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def answering() -> Iterator[Any]:
    handler = type("Handler", (Answers,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def port_of_nothing() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_token_is_trimmed_as_it_may_come_from_a_file() -> None:
    for token in ("T0ken\n", lambda: " T0ken\r\n"):
        with answering() as server:
            Fencepost(f"http://127.0.0.1:{server.server_port}", token).look("a")
            assert server.RequestHandlerClass.seen == ["/locks/a Bearer T0ken"]


@pytest.mark.parametrize(
    "token", ["", " \n", "T0ken\nT0ken", "T0ken T0ken", "T0kenü", None, b"T0ken"]
)
@pytest.mark.parametrize("kind", [Fencepost, AsyncFencepost])
def test_a_token_that_no_header_can_have_is_refused_and_not_shown(token: Any, kind: Any) -> None:
    with pytest.raises(ValueError, match="the token") as refused:
        kind("http://127.0.0.1:1", token)
    assert "T0ken" not in str(refused.value)


def test_a_function_that_returns_no_token_is_not_called_again() -> None:
    calls: List[int] = []

    def token() -> str:
        calls.append(1)
        return "T0ken\nT0ken"

    with pytest.raises(InvalidRequest, match="the token has"):
        Fencepost("http://127.0.0.1:1", token).look("a")
    assert len(calls) == 1
    assert checked_token(" T ") == "T"


def test_urls_are_trimmed_and_may_have_commas_in_between() -> None:
    client = Fencepost(" http://a/ , https://b:8443/path/ ,", "T")
    assert client.urls == ["http://a", "https://b:8443/path"]
    assert Fencepost([" http://a\n", ""], "T").urls == ["http://a"]


@pytest.mark.parametrize(
    "url",
    [
        *("http://user:s3cret@host", "http://host:s3cret", "http://s3cret host", "ftp://s3cret"),
        *("http://host?s3cret", "http://host#s3cret", "http://[s3cret", "http://host:99999/s3cret"),
        *("s3cret", "http://s3cret@\u2100"),
    ],
)
def test_what_is_no_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="URL 2 of 2") as refused:
        Fencepost(["http://a", url], "T")
    assert "s3cret" not in str(refused.value) and refused.value.__cause__ is None
    nothing: Any
    for nothing in ("", ",", [], None):
        with pytest.raises(ValueError, match="a URL is required"):
            Fencepost(nothing, "T")


@pytest.mark.parametrize(
    "options",
    [
        *({"ttl": datetime.timedelta(seconds=30)}, {"ttl": None}, {"ttl": "30"}, {"wait": -1}),
        *({"wait": float("nan")}, {"margin": float("inf")}, {"limit": 1.5}, {"holder": 7}),
        *({"metadata": {"a": 1}}, {"metadata": "a"}, {"on_release_requested": 1}),
    ],
)
def test_an_option_that_cannot_be_sent_is_refused_before_a_request(options: Dict[str, Any]) -> None:
    for kind in (Fencepost, AsyncFencepost):
        with pytest.raises(InvalidRequest, match=next(iter(options))) as refused:
            kind("http://127.0.0.1:1", "T").lock("a", **options)
        assert refused.value.code == "invalid_request"
    with pytest.raises(TypeError):
        Fencepost("http://127.0.0.1:1", "T").lock("a", tll=30)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="retry_for"):
        Fencepost("http://127.0.0.1:1", "T", retry_for=datetime.timedelta(1))  # type: ignore[arg-type]


def test_names_that_are_none_are_refused_before_a_request() -> None:
    client = Fencepost("http://127.0.0.1:1", "T")
    for name in ("", "..", 7, None, "\ud800"):
        with pytest.raises(InvalidRequest):
            client.lock(name)  # type: ignore[arg-type]
    claims: Any
    for claims in ("orders:42", [7]):
        with pytest.raises(InvalidRequest):
            client.lock_set(claims)
    with pytest.raises(InvalidRequest):
        client.adopt("orders:42", "t1\nt2")


def test_a_header_that_the_library_refuses_is_not_tried_again() -> None:
    def propagate(headers: Dict[str, str]) -> None:
        headers["traceparent"] = "s3cret\n"

    with answering() as server:
        client = Fencepost(f"http://127.0.0.1:{server.server_port}", "T", propagate=propagate)
        begun = time.monotonic()
        with pytest.raises(InvalidRequest, match="cannot be sent") as refused:
            client.look("a")
        assert time.monotonic() - begun < 10  # retry_for is 30
    assert "s3cret" not in str(refused.value) and refused.value.__cause__ is None


def test_a_wrong_port_warns_once_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    url = f"http://127.0.0.1:{port_of_nothing()}"
    client = Fencepost(url, "T0ken", retry_for=1)
    caplog.set_level(logging.WARNING, "fencepost")
    logging.getLogger("fencepost").propagate = True
    with pytest.raises(NoAnswer) as failed:
        try:
            _ = 1 // 0
        except ZeroDivisionError:  # is no cause of what fails meanwhile
            client.look("a")
    with pytest.raises(NoAnswer):
        client.look("a")
    assert len(caplog.messages) == 1
    for text in (caplog.messages[0], str(failed.value)):
        assert url in text and "Connection refused" in text and "T0ken" not in text
    assert isinstance(failed.value.__cause__, ConnectionRefusedError)


def test_the_cause_in_asyncio() -> None:
    async def main() -> None:
        async with AsyncFencepost(f"http://localhost:{port_of_nothing()}", "T", retry_for=0.5) as c:
            await c.look("a")

    with pytest.raises(NoAnswer, match=r"localhost:\d+: .*[Cc]onnect") as failed:
        asyncio.run(main())
    assert isinstance(failed.value.__cause__, ConnectionRefusedError)


def test_a_token_function_that_fails_is_called_again_and_its_error_is_the_cause() -> None:
    def token() -> str:
        raise OSError("the file s3cret is not there")

    with pytest.raises(NoAnswer, match="the function for the token failed") as failed:
        Fencepost("http://127.0.0.1:1", token, retry_for=0.5).look("a")
    assert isinstance(failed.value.__cause__, OSError)


def test_the_proxy_of_the_environment_is_used_but_never_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering() as proxy, answering() as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        monkeypatch.setenv("no_proxy", "direct.invalid")
        seen = proxy.RequestHandlerClass.seen
        Fencepost("http://locks.invalid", "T").look("a")
        assert seen == ["http://locks.invalid/locks/a Bearer T"]
        for host in ("127.0.0.1", "localhost"):
            Fencepost(f"http://{host}:{server.server_port}", "T").look("a")
        with pytest.raises(FencepostError):
            Fencepost("http://direct.invalid", "T", retry_for=0.1).look("a")
        assert len(seen) == 1 and len(server.RequestHandlerClass.seen) == 2


def test_help_shows_options_with_types_units_defaults_and_errors() -> None:
    for kind in (Fencepost, AsyncFencepost):
        text = pydoc.plain(pydoc.render_doc(kind.lock))
        for part in ("ttl: 'float' = 30.0", "mode: 'Mode' = 'exclusive'", "seconds", "WaitTimeout"):
            assert part in text or part.replace("'", "") in text, text
    for call in ("try_lock", "lock_set", "try_lock_set", "async_acquire", "lead", "claim", "adopt"):
        text = pydoc.plain(pydoc.render_doc(getattr(Fencepost, call)))
        assert "margin" in text and "**" not in text, text
