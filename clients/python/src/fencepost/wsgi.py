"""Refuses requests of a holder whose lock a later one has acquired: middleware for WSGI.

    app.wsgi_app = Guard(app.wsgi_app, raise_fence)  # Flask

The holder sends its fence with each request. The guard keeps the greatest one of each resource.

A request can still be overtaken between the check and what its handler writes. The handler finds
the fence in ``environ["fencepost.fence"]``, or None: compare it again in the transaction that
writes.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Optional

from ._fence import Memory, Refusal, Stale, compare, path_of, read_fence

__all__ = ["Guard", "Memory", "Stale"]

Environ = Dict[str, Any]
App = Callable[[Environ, Any], Iterable[bytes]]


def _path(environ: Environ) -> str:
    root, path = (str(environ.get(name, "")) for name in ("SCRIPT_NAME", "PATH_INFO"))
    return path_of(root, path).encode("latin-1").decode(errors="replace")  # PEP 3333


class Guard:
    """Checks the fence of requests before an app serves them.

    ``raise_fence(resource, fence)`` stores the fence if it is greater than that of the resource,
    and returns the greatest. It is atomic, and at least as durable as the data. If it raises, the
    app does not run.

    ``resource(environ)`` returns what a request reads or writes, or None for what the guard does
    not check. The default is the path, however it is spelled: with or without a host, repeated
    slashes and a slash at its end. All paths to what one lock protects need the same resource:
    where a router ignores case, or two routes write the same, name it yourself.

    ``optional`` lets writes without a fence pass. Without it only GET, HEAD and OPTIONS do.

    ``on_stale(environ, stale)`` is called before a stale request is answered: report it in another
    thread.
    """

    def __init__(
        self,
        app: App,
        raise_fence: Callable[[str, int], int],
        *,
        resource: Callable[[Environ], Optional[str]] = _path,
        optional: bool = False,
        on_stale: Optional[Callable[[Environ, Stale], object]] = None,
    ) -> None:
        self._app = app
        self._raise_fence = raise_fence
        self._resource = resource
        self._optional = optional
        self._on_stale = on_stale

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        try:
            environ["fencepost.fence"] = self._check(environ)
        except Refusal as refusal:
            start_response(f"{refusal.status:d} {refusal.status.phrase}", refusal.headers)
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [refusal.body]
        return self._app(environ, start_response)

    def _check(self, environ: Environ) -> Optional[int]:
        resource = self._resource(environ)
        if not resource:
            return None
        fence = read_fence(environ["REQUEST_METHOD"], environ.get("HTTP_FENCE"), self._optional)
        if fence is None:
            return None
        known = self._raise_fence(resource, fence)
        compare(Stale(resource, fence, known), environ, self._on_stale)
        return fence
