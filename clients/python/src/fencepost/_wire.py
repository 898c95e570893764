"""Requests, and the connections that carry them."""

from __future__ import annotations

import functools
import json
import os
import re
import socket
import ssl
import urllib.request
import weakref
from collections import defaultdict
from contextlib import suppress
from typing import (
    Any,
    Callable,
    DefaultDict,
    Dict,
    Generic,
    Iterator,
    List,
    NamedTuple,
    Optional,
    TypeVar,
    Union,
)
from urllib.parse import urlsplit

import httpx

from ._errors import InvalidRequest
from ._system import System

L = TypeVar("L")

_MAX_IDLE = 16  # connections that a client keeps
_EXPIRY = 30.0  # seconds after which an idle connection is not used again
# Held locks are renewed at the same URLs: to parse one takes a tenth of a renewal.
_url = functools.lru_cache(2048)(httpx.URL)
_VISIBLE = re.compile("[!-~]+")  # in ASCII
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")
_LIMITS = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_EXPIRY)

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
    prefer: str = ""
    body: Optional[Dict[str, Any]] = None


class Answer(NamedTuple):
    """What a server, or a proxy in front of it, sent."""

    status: int
    retry_after: str
    body: bytes


class Lane:
    """One connection, which another thread can cut."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport
        self._socket: Optional[socket.socket] = None
        self._aborted = False

    def send(self, request: httpx.Request) -> httpx.Response:
        request.extensions["trace"] = self._trace  # there may be a new connection
        return self._transport.handle_request(request)

    def _trace(self, event: str, info: Dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._aborted:
                self.abort()

    def abort(self) -> None:
        """Ends a request under way. SSLSocket.shutdown would disturb the thread that reads."""
        self._aborted = True
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        self._transport.close()


class Lanes(Generic[L]):
    """Connections that are not in use. One pool for all would search it for each request.

    There is no bound on those in use: a renewal never waits for a request that waits.
    """

    def __init__(self, connect: Callable[[str], L]) -> None:
        self._connect = connect
        self.idle: DefaultDict[str, List[L]] = defaultdict(list)  # by base URL
        self.closed = False

    def take(self, base: str) -> L:
        with suppress(IndexError):
            return self.idle[base].pop()
        return self._connect(base)

    def give(self, base: str, lane: L) -> bool:
        """Keeps a lane. It reports false if the caller has to close it."""
        if self.closed or len(self.idle[base]) >= _MAX_IDLE:
            return False
        self.idle[base].append(lane)
        return True

    def drain(self) -> Iterator[L]:
        self.closed = True
        for idle in self.idle.values():
            while idle:
                yield idle.pop()


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
        self._token = token if callable(token) else checked_token(token)
        self._propagate = propagate
        self._proxy = proxy
        self._verify = verify
        self.reset()
        _wires.add(self)

    def reset(self) -> None:
        """Begins without connections; those of a parent process are not used."""
        self.lanes = Lanes(self._connect)
        self.async_lanes = Lanes(self._connect_async)

    def _connect(self, base: str) -> Lane:
        return Lane(httpx.HTTPTransport(**self._options(base)))

    def _connect_async(self, base: str) -> httpx.AsyncBaseTransport:
        return httpx.AsyncHTTPTransport(**self._options(base))

    def _options(self, base: str) -> Dict[str, Any]:
        if self._verify is None:  # once: it reads all certificates of the machine
            self._verify = httpx.create_ssl_context()
        proxy = self._proxy or _environment_proxy(base)
        return {"verify": self._verify, "proxy": proxy, "limits": _LIMITS}

    def _bearer(self) -> str:
        if isinstance(self._token, str):
            return self._token
        try:
            token = self._token()
        except Exception as error:
            raise TokenFailed from error
        return sendable_token(token)

    def prepare(self, base: str, request: Request, timeout: float) -> httpx.Request:
        """Builds a request with all its headers. httpx would take longer to add the usual ones.

        An error is final, unless it is :class:`TokenFailed`.
        """
        url = _url(base + request.path)
        headers: Dict[str, str] = {}
        if self._propagate is not None:
            self._propagate(headers)
        bearer = f"Bearer {self._bearer()}"
        headers = {"Host": url.netloc.decode(), **headers, "Authorization": bearer}
        if request.token:
            headers["Lock-Token"] = request.token
        if request.key:
            headers["Idempotency-Key"] = request.key
        if request.prefer:
            headers["Prefer"] = request.prefer
        if request.after:
            headers["Last-Event-ID"] = request.after
        content = b""
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(request.body).encode()
        if request.method in ("POST", "PUT"):
            headers["Content-Length"] = str(len(content))
        times = {"connect": min(timeout, 10.0), "read": timeout, "write": timeout, "pool": timeout}
        return httpx.Request(
            request.method,
            url,
            headers=headers,
            stream=httpx.ByteStream(content),
            extensions={"timeout": times},
        )

    def close(self) -> None:
        for lane in self.lanes.drain():
            lane.close()

    async def close_async(self) -> None:
        for lane in self.async_lanes.drain():
            await lane.aclose()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


class TokenFailed(Exception):
    """The function that returns the bearer token raised its cause."""


def checked_token(token: object) -> str:
    """Trims a token, which may come from a file. Its errors do not show it."""
    if not isinstance(token, str):
        raise ValueError(f"fencepost: the token is a text, not {type(token).__name__}")
    token = token.strip()
    if not _VISIBLE.fullmatch(token):
        why = "has characters that a header cannot have" if token else "is empty"
        raise ValueError(f"fencepost: the token {why}")
    return token


def sendable_token(token: object) -> str:
    """Trims a token that a request needs."""
    try:
        return checked_token(token)
    except ValueError as error:
        raise InvalidRequest("invalid_request", str(error)) from None


def _environment_proxy(base: str) -> Optional[str]:
    """The proxy that the environment sets for a base URL; none for this machine itself."""
    parts = urlsplit(base)
    proxy = urllib.request.getproxies_environment().get(parts.scheme)
    if not proxy or _LOOPBACK.fullmatch(parts.hostname or ""):
        return None
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


_wires: weakref.WeakSet[Wire] = weakref.WeakSet()


def _after_fork() -> None:
    for wire in list(_wires):
        wire.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
