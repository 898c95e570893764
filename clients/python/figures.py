"""Prints what the client costs its process. The figures: ../../test/contest/README.md."""

from __future__ import annotations

import gc
import os
import secrets
import time

import httpx

from fencepost import Fencepost

URL = os.environ["FENCEPOST_URL"].split(",")[0]
TOKEN = os.environ["FENCEPOST_TOKEN"]
LOCKS = 1_000
SECONDS = float(os.environ.get("SECONDS", "60"))
CYCLES = 2_000
ROUNDS = 5  # of each kind, in turn: the machine is not always equally fast


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held(client: Fencepost) -> None:
    warm = [client.lock(f"figures:warm-{i}", ttl=30) for i in range(20)]
    for lock in warm:
        lock.release()
    gc.collect()
    before = resident()
    locks = [client.lock(f"figures:{i}", ttl=30) for i in range(LOCKS)]
    gc.collect()
    size = (resident() - before) / LOCKS
    cpu, wall = time.process_time(), time.monotonic()
    time.sleep(SECONDS)
    percent = 100 * (time.process_time() - cpu) / (time.monotonic() - wall)
    for lock in locks:
        lock.check()
    size = max(size, (resident() - before) / LOCKS)
    print(f"held-cpu-percent {percent:.2f}")
    print(f"held-bytes {size:.0f}")
    for lock in locks:
        lock.release()


def by_client(client: Fencepost, cycles: int) -> float:
    begun = time.process_time()
    for _ in range(cycles):
        client.lock("figures:cycle", ttl=30, wait=60).release()
    return time.process_time() - begun


def by_library(http: httpx.Client, cycles: int) -> float:
    begun = time.process_time()
    for _ in range(cycles):
        granted = http.post(
            "/locks/figures:cycle",
            json={"ttl_seconds": 30, "wait_seconds": 60},
            headers={"Idempotency-Key": secrets.token_hex(16)},
        ).json()
        http.delete("/locks/figures:cycle", headers={"Lock-Token": granted["token"]})
    return time.process_time() - begun


def acquire(client: Fencepost) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    ours = bare = 0.0
    with httpx.Client(base_url=URL, headers=headers) as http:
        by_client(client, 50)
        by_library(http, 50)
        for _ in range(ROUNDS):
            ours += by_client(client, CYCLES // ROUNDS)
            bare += by_library(http, CYCLES // ROUNDS)
    print(f"acquire-ratio {ours / bare:.2f}")


def main() -> None:
    with Fencepost(URL, TOKEN) as client:
        held(client)
        acquire(client)


if __name__ == "__main__":
    main()
