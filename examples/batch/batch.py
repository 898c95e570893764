"""Runs many jobs, a few at a time, without waiting for any of them.

Each job asks for the semaphore and hangs up. When its lock is granted the server calls back. The
job claims the grant, works, and releases.
"""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from fencepost import BadWebhook, Fencepost, FencepostError, verify_webhook

URL = os.environ["FENCEPOST_URL"]
TOKEN = os.environ["FENCEPOST_TOKEN"]
JOBS = int(os.environ.get("JOBS", "100"))
LIMIT = int(os.environ.get("LIMIT", "4"))
WORK = float(os.environ.get("WORK", "0.1"))  # seconds that a job takes
LOCK = "reports:nightly"

fencepost = Fencepost(URL, TOKEN)


class Batch:
    """What is known of the jobs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.seen = set()  # ids of callbacks: each may come twice
        self.fences = set()
        self.running = self.most = self.finished = 0
        self.failed = []

    def called(self, event):
        """Begins a job whose lock is granted, once."""
        with self.lock:
            if event.id in self.seen:
                return
            self.seen.add(event.id)
        threading.Thread(target=self.run, args=(event,), daemon=True).start()

    def run(self, event):
        fault = None
        try:
            with fencepost.claim(event) as held:
                self.work(held.fence)
                held.check()
        except FencepostError as error:  # also of an event that is no grant
            fault = str(error)
        with self.lock:
            self.finished += 1
            if fault:
                self.failed.append(fault)
            if self.finished == JOBS:
                self.done.set()

    def work(self, fence):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.fences.add(fence)
        time.sleep(WORK)  # hand the fence to each write
        with self.lock:
            self.running -= 1


def receiver(batch, secret):
    class Receiver(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self):
            body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 64 * 1024))
            try:
                batch.called(verify_webhook(self.headers, body, secret))
                self.send_response(204)  # at once: the work is done after it
            except BadWebhook:
                self.send_response(400)
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 1024

    server = Server(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/granted"


def main():
    made = httpx.post(
        f"{URL}/webhooks/callback-secret/rotate", headers={"Authorization": f"Bearer {TOKEN}"}
    ).raise_for_status()
    batch = Batch()
    url = receiver(batch, made.json()["secret"])

    def ask(number):
        fencepost.async_acquire(
            LOCK, url, mode="semaphore", limit=LIMIT, wait=3600, metadata={"job": str(number)}
        )

    began = time.time()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(JOBS)))
    print(f"{JOBS} jobs wait for {LOCK}, at most {LIMIT} at a time; "
          f"all requests were answered within {time.time() - began:.1f} s")
    if not batch.done.wait(timeout=600):
        raise SystemExit(f"only {batch.finished} of {JOBS} jobs ended")
    took, ideal = time.time() - began, JOBS * WORK / LIMIT
    print(f"{JOBS - len(batch.failed)} done, {len(batch.failed)} failed, never more than "
          f"{batch.most} at once; {took:.1f} s, {ideal:.1f} s if it all were work")
    if batch.failed or batch.most > LIMIT or len(batch.fences) != JOBS:
        raise SystemExit(f"not as it should be: {batch.failed[:5]}")


main()
