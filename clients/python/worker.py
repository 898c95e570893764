"""A worker of the contest of languages: ../../test/contest/README.md."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, Dict, Optional

import httpx

from fencepost import Fencepost, FencepostError, Held, LockLost

LOCKS = os.environ["LOCKS"].split(",")
RESOURCE = os.environ["RESOURCE"].rstrip("/")
TTL = float(os.environ["TTL"])


def end_of_lease(held: Held) -> float:
    """Seconds to the end of the lease, negative after it."""
    return held.left() + held.margin


def attempt(client: Fencepost, http: httpx.Client, name: str) -> Dict[str, Any]:
    outcome: Dict[str, Any] = {"lock": name, "fence": 0}
    held: Optional[Held] = None
    try:
        with client.lock(name, ttl=TTL, wait=20) as held:
            outcome["fence"] = held.fence
            answer = http.get(f"/{name}", params={"fence": held.fence})
            if answer.status_code == 409:
                return {**outcome, "outcome": "stale", "detail": "the read is refused"}
            number = int(answer.raise_for_status().text)
            if held.lost.wait(random.uniform(0, TTL / 2)):
                outcome["left"] = end_of_lease(held)
            held.check()
            left = end_of_lease(held)
            target = f"/{name}?fence={held.fence}&left={left:.6f}"
            answer = http.put(target, content=str(number + 1))
            if answer.status_code == 409:
                return {**outcome, "outcome": "stale", "left": left, "detail": "refused"}
            answer.raise_for_status()
            outcome.update(outcome="written", left=left, detail="")
        return outcome
    except LockLost as error:
        if held is None:  # an entry in the queue is gone
            return {**outcome, "outcome": "failed", "detail": str(error)}
        if outcome.get("outcome") == "written":  # lost after the write
            return outcome
        outcome.setdefault("left", end_of_lease(held))
        return {**outcome, "outcome": "lost", "detail": str(error)}
    except (FencepostError, httpx.HTTPError, ValueError) as error:
        return {**outcome, "outcome": "failed", "detail": f"{type(error).__name__}: {error}"}


def main() -> None:
    main_thread = threading.main_thread()

    def read() -> None:
        sys.stdin.read()
        assert main_thread.ident is not None
        signal.pthread_kill(main_thread.ident, signal.SIGINT)

    threading.Thread(target=read, daemon=True).start()
    urls = os.environ["API"].split(",")
    client = Fencepost(urls, os.environ["TOKEN"])
    with suppress(KeyboardInterrupt), client, httpx.Client(base_url=RESOURCE) as http:
        while True:
            print(json.dumps(attempt(client, http, random.choice(LOCKS))), flush=True)


if __name__ == "__main__":
    main()
