"""A worker of the contest of languages: ../../test/contest/README.md.

One round in two uses asyncio.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, Dict

import httpx

from fencepost import AsyncFencepost, Fencepost, FencepostError, LockLost

URLS = os.environ["FENCEPOST_URL"].split(",")
TOKEN = os.environ["FENCEPOST_TOKEN"]
LOCKS = os.environ["LOCKS"].split(",")
RESOURCE = os.environ["RESOURCE"].rstrip("/")
TTL = float(os.environ["TTL"])


class Stale(Exception):
    """The resource knows a greater fence."""


class Round:
    """Adds one to what the resource has, under the lock."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: Any = None
        self.says: Dict[str, Any] = {"lock": name, "fence": 0}

    def left(self) -> float:
        """Seconds to the end of the lease, negative after it."""
        return float(self.held.left() + self.held.margin)

    def begin(self, held: Any) -> str:
        self.held = held
        self.says["fence"] = held.fence
        return f"/{self.name}?fence={held.fence}"

    def write(self, target: str) -> str:
        """Is called last before the write."""
        self.held.check()
        self.says["left"] = self.left()
        return f"{target}&left={self.says['left']:.6f}"

    def by_thread(self, client: Fencepost, http: httpx.Client) -> None:
        with client.lock(self.name, ttl=TTL, wait=20) as held:
            target = self.begin(held)
            number = int(answer(http.get(target)))
            held.lost.wait(random.uniform(0, TTL / 2))
            answer(http.put(self.write(target), content=str(number + 1)))
            self.says["outcome"] = "written"

    async def by_task(self) -> None:
        http = httpx.AsyncClient(base_url=RESOURCE)
        client = AsyncFencepost(URLS, TOKEN)
        async with client, http, client.lock(self.name, ttl=TTL, wait=20) as held:
            target = self.begin(held)
            number = int(answer(await http.get(target)))
            await asyncio.sleep(random.uniform(0, TTL / 2))
            answer(await http.put(self.write(target), content=str(number + 1)))
            self.says["outcome"] = "written"

    def run(self, client: Fencepost, http: httpx.Client) -> Dict[str, Any]:
        outcome, detail = "written", ""
        try:
            if random.random() < 0.5:
                self.by_thread(client, http)
            else:
                asyncio.run(self.by_task())
        except Stale as error:
            outcome, detail = "stale", str(error)
        except LockLost as error:  # without held, an entry in the queue is gone
            outcome, detail = "lost" if self.held else "failed", str(error)
            if self.held and "outcome" not in self.says:
                self.says["left"] = self.left()
        except (FencepostError, httpx.HTTPError, ValueError) as error:
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        return {"outcome": outcome, "detail": detail, **self.says}


def answer(response: httpx.Response) -> str:
    if response.status_code == 409:
        raise Stale("the resource knows a greater fence")
    return response.raise_for_status().text


def interrupt_at_end_of_input() -> None:
    main = threading.main_thread().ident
    assert main is not None

    def read() -> None:
        sys.stdin.read()
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=read, daemon=True).start()


def main() -> None:
    with suppress(KeyboardInterrupt):
        interrupt_at_end_of_input()
        with Fencepost(URLS, TOKEN) as client, httpx.Client(base_url=RESOURCE) as http:
            while True:
                says = Round(random.choice(LOCKS)).run(client, http)
                print(json.dumps(says), flush=True)


if __name__ == "__main__":
    main()
