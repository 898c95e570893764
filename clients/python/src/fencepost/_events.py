"""Events: what happens to locks, as a stream that resumes by itself, and as signed webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Mapping, Optional, Sequence
from urllib.parse import urlencode

from ._errors import BadWebhook, no_answer, root
from ._io import IO, Opened, read_all
from ._options import time_of
from ._repeat import Again, Attempt, Limit, repeat
from ._wire import Answer, Request

if TYPE_CHECKING:
    from ._base import Base

_IDLE = 45.0  # seconds; a server sends something every 15
_PAUSE = 1.0  # after a stream that ended
_MAX_EVENT = 1 << 20  # bytes

_TOLERANCE = 300  # seconds
_LEAST_SECRET = 24  # bytes
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
_TIMESTAMP = re.compile("[0-9]{1,15}")


@dataclass(frozen=True)
class Event:
    """Something that happened to an entry. ``data`` of a callback has the token of its lock."""

    id: str
    type: str
    timestamp: datetime
    data: Dict[str, Any] = field(repr=False)


def event_of(text: bytes) -> Event:
    """Reads strict JSON: json alone takes NaN, and other encodings than UTF-8."""
    event = json.loads(text.decode(), parse_constant=_refuse)
    texts, data = [event[name] for name in ("id", "type", "timestamp")], event["data"]
    if not isinstance(data, dict) or not all(isinstance(text, str) for text in texts):
        raise TypeError("no event")
    return Event(texts[0], texts[1], time_of(texts[2]), data)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def events_path(types: Sequence[str], locks: Sequence[str]) -> str:
    query = {"types": ",".join(types), "locks": ",".join(locks)}
    given = {name: value for name, value in query.items() if value}
    return "/events" + ("?" + urlencode(given, safe=":,*") if given else "")


class Stream:
    """What is read of events, over the connections that it takes."""

    def __init__(self, client: Base, path: str, after: str) -> None:
        self._client = client
        self._path = path
        self._after = after  # the id of the last whole message
        self._opened: Optional[Opened] = None
        self._pending = b""  # the beginning of a line
        self._size = 0  # of what was read since the last message, in bytes
        self._lines: List[bytes] = []  # that were read and not looked at
        self._id = ""
        self._data: List[bytes] = []

    async def events(self, io: IO) -> AsyncIterator[Event]:
        try:
            while True:
                yield await repeat(self._client, io, Limit(lambda: math.inf), self._next)
        finally:
            await self._close()

    async def _next(self, a: Attempt) -> Event:
        """Reads until there is an event. An error ends the connection."""
        try:
            if self._opened is None:
                self._opened = await self._open(a)
            while True:
                while self._lines:
                    event = self._take(self._lines.pop(0))
                    if event is not None:
                        return event
                await self._read(a, self._opened)
        except BaseException:
            await self._close()
            raise

    async def _open(self, a: Attempt) -> Opened:
        request = Request("GET", self._path, _IDLE, after=self._after)
        failure: Optional[Exception] = None
        answer = Answer(200, "", b"")
        try:
            opened = await a.io.within(a.io.open(a.base, request, _IDLE), None)
            if opened.status != 200:
                answer = await a.io.within(read_all(opened), None)
        except Exception as error:
            failure = error
        if failure is not None:
            raise a.failed(failure)
        a.answered(answer)
        return opened

    async def _read(self, a: Attempt, opened: Opened) -> None:
        failure: Optional[Exception] = None
        try:
            chunk = await a.io.within(opened.chunks.__anext__(), None)
        except (Exception, StopAsyncIteration) as error:
            failure = error
        if failure is not None or self._size > _MAX_EVENT:
            raise Again(no_answer(failure and root(failure)), _PAUSE, usual=True)
        self._size += len(chunk)
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        self._lines += lines

    def _take(self, line: bytes) -> Optional[Event]:
        """Adds a line to the message. The empty one that ends a message may give an event."""
        name, _, value = line.rstrip(b"\r").partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"id":
            self._id = value.decode(errors="replace")
        elif name == b"data":
            self._data.append(value)
        if line.rstrip(b"\r"):
            return None
        data, self._data, self._size = b"\n".join(self._data), [], len(self._pending)
        try:
            event = event_of(data) if data else None
        except (ValueError, LookupError, TypeError) as error:
            raise Again(no_answer(error), _PAUSE, usual=True) from None
        self._after, self._id = self._id or self._after, ""
        return event

    async def _close(self) -> None:
        opened, self._opened = self._opened, None
        self._pending, self._lines, self._size = b"", [], 0
        self._id, self._data = "", []
        if opened is not None:
            await opened.close(False)


def verify_webhook(headers: Mapping[str, str], body: bytes, *secrets: str) -> Event:
    """Returns the event of a delivery that is signed with one of the secrets.

    The signature is that of Standard Webhooks 1.0, and not older or newer than five minutes. While
    you rotate a secret, give both. ``body`` has to be as it came, before anything parses it.

    A delivery may come again, also from an attacker within the five minutes: pass over an event
    whose ``webhook-id`` you have seen. Answer :class:`BadWebhook` with 400.
    """
    return verify_at(time.time(), headers, body, secrets)


def verify_at(now: float, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> Event:
    given = {name.lower(): value for name, value in headers.items()}
    fault = _fault(now, given, body, secrets)
    if fault:
        raise BadWebhook("bad_webhook", f"the delivery is not one of the sender: {fault}")
    try:
        return event_of(body)
    except (ValueError, LookupError, TypeError, RecursionError):
        raise BadWebhook("bad_webhook", "the delivery has no event") from None


def _fault(
    now: float, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]
) -> Optional[str]:
    """Why a delivery is not believed."""
    identity, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not _ID.fullmatch(identity):  # with a dot, the signed text could be cut elsewhere
        return "it has no id"
    if not _TIMESTAMP.fullmatch(timestamp):
        return "it has no timestamp"
    if abs(now - int(timestamp)) > _TOLERANCE:
        return "its timestamp is not of now"
    signed = f"{identity}.{timestamp}.".encode() + body
    for secret in secrets:
        try:
            key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) < _LEAST_SECRET:
            return "a secret is not valid"
        mac = hmac.new(key, signed, hashlib.sha256).digest()
        want = b"v1," + base64.b64encode(mac)
        for signature in headers.get("webhook-signature", "").split():
            if hmac.compare_digest(signature.encode(), want):
                return None
    return "no signature is of these secrets"
