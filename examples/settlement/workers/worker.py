#!/usr/bin/env python3
"""Settles invoices under locks of Fencepost, with its Python client.

Environment: FENCEPOST_URL, FENCEPOST_TOKEN_FILE, LEDGER_URL, INVOICES (the CSV file),
WORKER (its name), TTL_SECONDS, WORK_SECONDS (what one settlement takes) and, for the
demo only, BEFORE_WRITE_URL (asked before each write; the write waits for the answer).
"""

import csv
import os
import random
import signal
import sys
import time
from pathlib import Path

import httpx
from fencepost import Deadlock, Fencepost, LockHeld, LockLost, WaitTimeout

WORKER = os.environ.get("WORKER", "python")
WORK = float(os.environ.get("WORK_SECONDS", "0"))
BEFORE_WRITE = os.environ.get("BEFORE_WRITE_URL")
OPTIONS = {"ttl": float(os.environ.get("TTL_SECONDS", "30")), "holder": WORKER}
# A file keeps the bearer token out of the process list.
BEARER = Path(os.environ["FENCEPOST_TOKEN_FILE"]).read_text().strip()
fencepost = Fencepost(os.environ["FENCEPOST_URL"], BEARER)
ledger = httpx.Client(base_url=os.environ["LEDGER_URL"], headers={"Worker": WORKER}, timeout=5)


class Stale(Exception):
    """The ledger knows a newer holder."""


def log(text):
    print(f"{WORKER}: {text}", file=sys.stderr, flush=True)


def send(method, path, **request):
    """Sends a request until it is answered. The ledger takes a repeated write once."""
    while True:
        try:
            answer = ledger.request(method, f"/batches/{path}", **request)
            if answer.status_code < 500:
                return answer
        except httpx.TransportError:
            pass
        time.sleep(random.uniform(0.2, 0.8))


def write(held, path, body=None):
    """Sends a write with the fence, unless the lock is lost."""
    held.check()
    if body and BEFORE_WRITE:
        about = f"{WORKER} {held.name} {held.fence} {body['invoice']}"
        httpx.post(BEFORE_WRITE, content=about, timeout=120)
    # However close the check above is to this line, the process can stop in between.
    answer = send("POST", f"{held.name}/{path}", json=body, headers={"Fence": str(held.fence)})
    if answer.status_code == 409:
        raise Stale(f"refused: 409 {answer.text.strip()}")
    answer.raise_for_status()
    return answer.text.split()


def settle(held, batch):
    """Pays what is still open. Opening comes first: it shuts out every older holder."""
    settled = set(write(held, "open"))
    log(f"{held.name} fence {held.fence}: holds it, {len(settled)} of {len(batch)} settled before")
    for invoice, cents in batch.items():
        if invoice not in settled:
            time.sleep(WORK)
            write(held, "settlements", {"invoice": invoice, "amount_cents": cents})


def finished(lock, batch):
    """A look without the lock saves taking it; only a look under the lock may be acted on."""
    answer = send("GET", lock)
    return answer.status_code == 200 and len(answer.text.split()) == len(batch)


def take_one(batches):
    """The first lock that is free, else a place in the queue of the first unfinished one."""
    for lock in list(batches):
        if finished(lock, batches[lock]):
            del batches[lock]
            continue
        try:
            return fencepost.try_lock(lock, **OPTIONS)
        except LockHeld:
            pass
    try:
        return fencepost.lock(next(iter(batches)), wait=20, **OPTIONS) if batches else None
    except (WaitTimeout, Deadlock):
        return None


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave through the with block
    batches = {}
    with open(os.environ["INVOICES"], newline="") as file:
        for row in csv.DictReader(file):
            batches.setdefault(row["batch"], {})[row["invoice"]] = int(row["amount_cents"])
    while batches:
        held = take_one(batches)
        if held is None:
            continue
        try:
            with held:
                settle(held, batches[held.name])
            del batches[held.name]
        except (LockLost, Stale) as why:
            log(f"{held.name} fence {held.fence}: stops, {why}")


main()
