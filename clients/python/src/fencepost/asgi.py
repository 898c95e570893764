"""Refuses requests of a holder whose lock a later one has acquired: middleware for ASGI.

    app.add_middleware(Guard, raise_fence=raise_fence)  # Starlette, FastAPI

The holder sends its fence with each request. The guard keeps the greatest one of each resource.

A request can still be overtaken between the check and what its handler writes. The handler finds
the fence in ``request.state.fence``, or None: compare it again in the transaction that writes.
"""

from __future__ import annotations

import inspect
from typing import Any, Awaitable, Callable, MutableMapping, Optional, Union

from ._fence import Memory, Refusal, Stale, compare, path_of, read_fence

__all__ = ["Guard", "Memory", "Stale"]

_Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[_Message]]
Send = Callable[[_Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def _path(scope: Scope) -> str:
    """Routers find a path with the root path, and one without it."""
    root, path = str(scope.get("root_path", "")).rstrip("/"), str(scope["path"])
    below = path[len(root) :] if path == root or path.startswith(root + "/") else path
    return path_of(root, below)


class Guard:
    """Checks the fence of requests before an app serves them. WebSockets pass without a check.

    ``raise_fence(resource, fence)`` stores the fence if it is greater than that of the resource,
    and returns the greatest. It is atomic, and at least as durable as the data. It may be a
    coroutine function. If it raises, the app does not run.

    ``resource(scope)`` returns what a request reads or writes, or None for what the guard does not
    check. The default is the path, however it is spelled: with or without the root path, a host,
    repeated slashes and a slash at its end. All paths to what one lock protects need the same
    resource: where a router ignores case, or two routes write the same, name it yourself.

    ``optional`` lets writes without a fence pass. Without it only GET, HEAD and OPTIONS do.

    ``on_stale(scope, stale)`` is called before a stale request is answered: start a task that
    reports it.
    """

    def __init__(
        self,
        app: App,
        raise_fence: Callable[[str, int], Union[int, Awaitable[int]]],
        *,
        resource: Callable[[Scope], Optional[str]] = _path,
        optional: bool = False,
        on_stale: Optional[Callable[[Scope, Stale], object]] = None,
    ) -> None:
        self._app = app
        self._raise_fence = raise_fence
        self._resource = resource
        self._optional = optional
        self._on_stale = on_stale

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            fence = await self._check(scope)
        except Refusal as refusal:
            return await _refuse(send, refusal)
        state = {**scope.get("state", {}), "fence": fence}
        await self._app({**scope, "state": state}, receive, send)

    async def _check(self, scope: Scope) -> Optional[int]:
        resource = self._resource(scope)
        if not resource:
            return None
        fence = read_fence(scope["method"], _header(scope), self._optional)
        if fence is None:
            return None
        known = self._raise_fence(resource, fence)
        if inspect.isawaitable(known):
            known = await known
        compare(Stale(resource, fence, known), scope, self._on_stale)
        return fence


def _header(scope: Scope) -> Optional[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"fence"]
    return ",".join(values) if values else None


async def _refuse(send: Send, refusal: Refusal) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in refusal.headers]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body})
