#!/usr/bin/env python3
"""Settles invoices under Fencepost locks. Python 3.10 or later, standard library only.

Environment: FENCEPOST_URL, FENCEPOST_TOKEN_FILE, LEDGER_URL, INVOICES (the CSV file),
WORKER (its name), TTL_SECONDS, WORK_SECONDS (what one settlement takes) and, for the
demo only, BEFORE_WRITE_URL (asked before each write; the write waits for the answer).
"""

import csv
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path

FENCEPOST = os.environ["FENCEPOST_URL"]
LEDGER = os.environ["LEDGER_URL"]
WORKER = os.environ.get("WORKER", "python")
TTL = float(os.environ.get("TTL_SECONDS", "30"))
WORK = float(os.environ.get("WORK_SECONDS", "0"))
BEFORE_WRITE = os.environ.get("BEFORE_WRITE_URL")
# A file keeps the bearer token out of the process list.
BEARER = Path(os.environ["FENCEPOST_TOKEN_FILE"]).read_text().strip()

QUEUE = 20.0  # seconds to queue for a lock once nothing else is free
HELD_OPEN = 50.0  # seconds the server holds one waiting request open at most
PATIENCE = 30.0  # seconds to go on trying while a service does not answer


class Lost(Exception):
    """The lock is no longer ours; whoever holds it now goes on with the batch."""


@dataclass
class Answer:
    status: int  # 0: no answer, the outcome is unknown
    body: bytes = b""
    retry_after: float | None = None

    def json(self):
        return json.loads(self.body)

    def worth_retrying(self):
        return self.status in (0, 429) or self.status >= 500

    def __str__(self):
        return f"{self.status} {self.body.decode(errors='replace').strip()}"


def call(method, url, headers, body=None, timeout=5.0):
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return Answer(response.status, response.read())
    except urllib.error.HTTPError as refused:
        return Answer(refused.code, refused.read(), seconds(refused.headers.get("Retry-After")))
    except (OSError, http.client.HTTPException):
        return Answer(0)


def seconds(text):
    return float(text) if text and text.isdigit() else None


def pause(answer):
    """Wait as long as the server asked, else about half a second, not in step with others."""
    time.sleep(answer.retry_after or random.uniform(0.2, 0.8))


def log(text):
    print(f"{WORKER}: {text}", file=sys.stderr, flush=True)


# --- the lock -----------------------------------------------------------------


def fencepost(method, path, body=None, timeout=5.0, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"Authorization": f"Bearer {BEARER}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    return call(method, FENCEPOST + path, headers, data, timeout)


def acquire(lock, wait):
    """Take the lock, queueing for at most `wait` seconds. None when others keep it."""
    body = {"ttl_seconds": TTL, "wait_seconds": wait, "holder": WORKER}
    key, sent = str(uuid.uuid4()), time.monotonic()
    while time.monotonic() < sent + wait + PATIENCE:
        # The same key is the same place in the queue, so asking again is always safe:
        # after a lost answer, and after 202, which means that the wait goes on.
        timeout = min(wait, HELD_OPEN) + 10
        answer = fencepost("POST", f"/locks/{lock}", body, timeout, Idempotency_Key=key)
        if answer.status == 201:
            return Lease.granted(lock, answer.json(), sent)
        if answer.status == 423 or answer.status == 409 and answer.json().get("code") == "deadlock":
            return None
        if answer.status == 410:  # granted and expired while its answers were lost
            key, sent = str(uuid.uuid4()), time.monotonic()
        elif answer.worth_retrying():
            pause(answer)
        elif answer.status != 202:
            raise SystemExit(f"{WORKER}: acquire {lock}: {answer}")
    raise SystemExit(f"{WORKER}: acquire {lock}: no answer")  # what may be queued lapses with its TTL


class Lease:
    """A held lock, renewed in the background until the with block ends."""

    def __init__(self, lock, token, fence, deadline):
        self.lock, self.fence = lock, fence
        self._token, self._deadline = token, deadline
        self._stop = threading.Event()
        self._renewer = threading.Thread(target=self._keep, daemon=True)

    @classmethod
    def granted(cls, lock, entry, sent):
        """The lease of a 201, or None if it ran out before we could use it."""
        lease = cls(lock, entry["token"], entry["fence"], sent + TTL)
        # The grant came at some time between asking and hearing of it. After a wait only
        # a renewal, counted from its own sending, says how long the lease lasts.
        if time.monotonic() > sent + TTL / 3:
            lease._renew()
        if not lease.held():
            return lease.release()
        return lease

    def held(self):
        """False once the lease may have ended. True is a guess: only the fence is proof."""
        return time.monotonic() < self._deadline

    def _renew(self):
        sent = time.monotonic()
        answer = fencepost("PUT", f"/locks/{self.lock}/renew", timeout=TTL / 3, Lock_Token=self._token)
        if answer.status == 200:
            self._deadline = sent + TTL
        elif answer.status in (403, 410):
            self._deadline = 0
        return answer.status == 200

    def _keep(self):
        delay = TTL / 3
        while self.held() and not self._stop.wait(delay):
            delay = TTL / 3 if self._renew() else TTL / 10

    def __enter__(self):
        self._renewer.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._renewer.join()
        self.release()

    def release(self):
        for _ in range(3):  # 410 is fine: it is gone already. If all fail, the TTL frees it.
            answer = fencepost("DELETE", f"/locks/{self.lock}", Lock_Token=self._token)
            if not answer.worth_retrying():
                break
            pause(answer)


# --- the work -----------------------------------------------------------------


def ledger(method, path, lease=None, body=None):
    headers = {"Worker": WORKER, "Content-Type": "application/json"}
    if lease:
        headers["Fence"] = str(lease.fence)
    data = json.dumps(body).encode() if body is not None else None
    return call(method, f"{LEDGER}/batches/{path}", headers, data)


def write(lease, path, body=None):
    """Send a write with the fence, again and again until its outcome is known."""
    while lease.held():
        if body and BEFORE_WRITE:
            about = f"{WORKER} {lease.lock} {lease.fence} {body['invoice']}"
            call("POST", BEFORE_WRITE, {}, about.encode(), timeout=120)
        # However close the check above is to this line, the process can stop in between.
        answer = ledger("POST", f"{lease.lock}/{path}", lease, body)
        if answer.status in (200, 201):
            return answer.body.decode().split()
        if answer.status == 409:
            raise Lost(f"refused: {answer}")
        if not answer.worth_retrying():
            raise SystemExit(f"{WORKER}: {path} {lease.lock}: {answer}")
        pause(answer)
    raise Lost("the lease has ended")


def settle(lease, batch):
    """Pay what is still open. Opening comes first: it shuts out every older holder."""
    settled = set(write(lease, "open"))
    log(f"{lease.lock} fence {lease.fence}: holds it, {len(settled)} of {len(batch)} settled before")
    for invoice, cents in batch.items():
        if invoice not in settled:
            time.sleep(WORK)
            write(lease, "settlements", {"invoice": invoice, "amount_cents": cents})


def finished(lock, batch):
    """A look without the lock saves taking it; only a look under the lock may be acted on."""
    answer = ledger("GET", lock)
    return answer.status == 200 and len(answer.body.split()) == len(batch)


def take_one(batches):
    """The first lock that is free, else a place in the queue of the first unfinished one."""
    for lock in list(batches):
        if finished(lock, batches[lock]):
            del batches[lock]
        elif lease := acquire(lock, wait=0):
            return lease
    return acquire(next(iter(batches)), QUEUE) if batches else None


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave through the with block
    batches = {}
    with open(os.environ["INVOICES"], newline="") as file:
        for row in csv.DictReader(file):
            batches.setdefault(row["batch"], {})[row["invoice"]] = int(row["amount_cents"])
    while batches:
        lease = take_one(batches)
        if lease is None:
            continue
        with lease:
            try:
                settle(lease, batches[lease.lock])
                del batches[lease.lock]
            except Lost as why:
                log(f"{lease.lock} fence {lease.fence}: stops, {why}")


if __name__ == "__main__":
    main()
